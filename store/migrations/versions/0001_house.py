"""The house as it is first built: every table, its constraints, the clock and the guards."""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute((Path(__file__).parent.parent / "0001_house.sql").read_text())


def downgrade() -> None:
    raise NotImplementedError("evidence is not thrown away: restore a backup instead")
