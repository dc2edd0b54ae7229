"""What every table shares: the schema, the metadata, and two kinds of column."""

from sqlalchemy import (
    Column,
    DateTime,
    MetaData,
    Text,
)

SCHEMA = "nightbell"

metadata = MetaData(schema=SCHEMA)


def instant(name: str, *, null: bool = False) -> Column[object]:
    """An absolute instant."""
    return Column(name, DateTime(timezone=True), nullable=null)


def words(name: str, *, null: bool = False) -> Column[str]:
    """A text."""
    return Column(name, Text, nullable=null)
