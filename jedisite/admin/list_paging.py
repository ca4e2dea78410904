"""Lists of large tables in the admin: counted without reading them, and always in the order of an index."""

from __future__ import annotations

import json
from typing import Any

from django.core.paginator import Paginator
from django.db import connection
from django.db.models import QuerySet
from django.utils.functional import cached_property
from unfold.views import ChangeList

EXACT_UP_TO = 10_000
"""Rows that are counted one by one, and rows that a list leads to: beyond them a person narrows the list."""

_ROWS = """
SELECT coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint FROM pg_class c
 WHERE c.relkind = 'r'
   AND (c.oid = %(table)s::regclass OR c.oid IN (SELECT relid FROM pg_partition_tree(%(table)s::regclass)))
"""


def estimated_rows(table: str) -> int:
    """Rows of a table and its partitions as the last ANALYZE saw them; 0 when it never ran."""
    with connection.cursor() as cursor:
        cursor.execute(_ROWS, {"table": table})
        return int(cursor.fetchone()[0])


def planned_rows(queryset: QuerySet[Any]) -> int:
    """Rows that the planner expects of a query; the query is not run."""
    plan = json.loads(queryset.order_by().explain(format="json"))
    return int(plan[0]["Plan"]["Plan Rows"])


class EstimatingPaginator(Paginator):
    """Counts exactly up to EXACT_UP_TO rows, estimates beyond, and leads no further than EXACT_UP_TO rows.

    The exact count walks the same index as the list, and stops at its limit whatever the table holds.
    """

    @cached_property
    def count(self) -> int:
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        try:
            counted = rows[: EXACT_UP_TO + 1].count()
        except OverflowError:  # a number that no column holds
            return 0
        if counted <= EXACT_UP_TO:
            return counted
        narrowed = bool(rows.query.where)
        return max(planned_rows(rows) if narrowed else estimated_rows(rows.model._meta.db_table), counted)

    @cached_property
    def num_pages(self) -> int:
        reachable = min(self.count, EXACT_UP_TO)
        return max(1, -(-reachable // self.per_page))


class FixedOrderChangeList(ChangeList):
    """A list that nobody can sort by a column without an index: the order is the admin's, or none at all."""

    def get_ordering(self, request: Any, queryset: Any) -> list[Any]:
        return list(self.model_admin.get_ordering(request))

    def get_ordering_field_columns(self) -> dict[int, str]:
        return {}

    def url_for_result(self, result: Any) -> str:
        return self.model_admin.url_of(result)
