"""Rows written in batches: one statement a table, however many rows, with the columns read from `store.tables`.

K decisions in one transaction cost a fraction of K transactions; that holds only while each table is written once.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, LiteralString, cast

import sqlalchemy
from psycopg import sql

from store.jsonb import jsonb
from store.turn import Turn


def insert_rows(turn: Turn, table: sqlalchemy.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert plain rows; a column that a row does not name is NULL."""
    if rows:
        turn.write(insert_statement(table), {"rows": jsonb([dict(row) for row in rows])})


@cache
def insert_statement(table: sqlalchemy.Table) -> sql.SQL:
    """`INSERT … SELECT … FROM jsonb_populate_recordset(…)` over every column that the database does not number itself."""
    columns = sql.SQL(", ").join(sql.Identifier(column.name) for column in table.columns if column.identity is None)
    statement = sql.SQL(
        "INSERT INTO {table} ({columns}) SELECT {columns} FROM jsonb_populate_recordset(NULL::{table}, %(rows)s)"
    ).format(table=sql.Identifier(table.name), columns=columns)
    return sql.SQL(cast("LiteralString", statement.as_string()))
