"""Tables filled with thousands of rows in one statement, and what PostgreSQL plans to do with a query on them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from django.db import connection
from django.db.models import QuerySet

VALUES = {
    "bigint": "i",
    "integer": "i",
    "smallint": "(i % 100)::smallint",
    "double precision": "i",
    "boolean": "false",
    "jsonb": "'{}'::jsonb",
    "bytea": "decode(md5(i::text), 'hex')",
    "timestamp with time zone": "clock_timestamp() - i * interval '1 second'",
}
"""SQL for the i-th value of a column that must have one, by its type; texts are 'x' and the number."""


def fill_table(table: str, rows: int, **expressions: str) -> None:
    """Insert `rows` rows and ANALYZE. `expressions` are SQL over the row number `i`, by column."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT column_name, data_type FROM information_schema.columns
                WHERE table_name = %s AND is_generated = 'NEVER' AND is_nullable = 'NO' AND column_default IS NULL
                  AND is_identity = 'NO'""",
            [table],
        )
        values = {name: VALUES.get(kind, "'x' || i") for name, kind in cursor.fetchall()} | expressions
        names = ", ".join(f'"{name}"' for name in values)
        cursor.execute(
            f"INSERT INTO {table} ({names}) SELECT {', '.join(values.values())} FROM generate_series(1, {rows}) i"  # noqa: S608
        )
        cursor.execute(f"ANALYZE {table}")


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A node of a plan and all below it."""
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def plan_of(sql: str, params: Any = None) -> dict[str, Any]:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", params)
        found = cursor.fetchone()[0]
    plan: dict[str, Any] = (json.loads(found) if isinstance(found, str) else found)[0]["Plan"]
    return plan


def scanned(plan: dict[str, Any]) -> list[str]:
    """Names of tables that a plan reads from beginning to end."""
    return [str(n.get("Relation Name")) for n in nodes(plan) if n["Node Type"] == "Seq Scan"]


def indexes(plan: dict[str, Any]) -> set[str]:
    return {str(n["Index Name"]) for n in nodes(plan) if "Index Name" in n}


def assert_uses_an_index(queryset: QuerySet[Any]) -> None:
    """The query reads no table from beginning to end, no partition either."""
    plan = json.loads(queryset.explain(format="json"))[0]["Plan"]
    assert scanned(plan) == [], json.dumps(plan, indent=1)
    assert indexes(plan), json.dumps(plan, indent=1)
