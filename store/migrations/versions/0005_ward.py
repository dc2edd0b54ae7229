"""The Ward: Sigils with scopes and expiry, budgets per owner and Schedule, and what Runs reserve and spend."""

from pathlib import Path

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute((Path(__file__).parent.parent / "0005_ward.sql").read_text())


def downgrade() -> None:
    raise NotImplementedError("evidence is not thrown away: restore a backup instead")
