"""Ways back: parking and answers, cancelling, findings about what is in doubt, recovery."""

from pathlib import Path

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute((Path(__file__).parent.parent / "0004_ways_back.sql").read_text())


def downgrade() -> None:
    raise NotImplementedError("evidence is not thrown away: restore a backup instead")
