"""Admission: capabilities and their leases, slices, quiet windows, readiness requests, origin policies, coalescing."""

from pathlib import Path

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute((Path(__file__).parent.parent / "0003_admission.sql").read_text())


def downgrade() -> None:
    raise NotImplementedError("evidence is not thrown away: restore a backup instead")
