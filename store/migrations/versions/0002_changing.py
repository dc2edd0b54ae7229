"""Changing a Schedule: what a cutover excludes, and when a Schedule was paused."""

from pathlib import Path

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute((Path(__file__).parent.parent / "0002_changing.sql").read_text())


def downgrade() -> None:
    raise NotImplementedError("evidence is not thrown away: restore a backup instead")
