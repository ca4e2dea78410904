"""What the list of workflows shows and is filtered by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from django.db import models
from django.db.models import QuerySet
from django.utils import timezone

from jedisite.web.choices import NameFilter
from jedisite.web.columns import Batch, Column, Columns, Row
from jedisite.web.filters_by_name import NamedFilters
from jedisite.web.paging import Computed
from tasks_app.lists.filtersets import MomentFilter, StatusFilter, WindowFilter
from tasks_app.lists.named_filters import user_filter
from tasks_app.models import Workflow
from tasks_app.workflows.expected_ends import expected_ends
from tasks_app.workflows.package_facts import PackageFact, facts_by_workflow
from tasks_app.workflows.rules.package_states import PackageStatus
from tasks_app.workflows.workflow_states import WorkflowState, with_states

_P = PackageStatus
_MAY_END = (WorkflowState.RUNNING, WorkflowState.WAITING)


class WorkflowFilter(NamedFilters):
    state = StatusFilter(choices=[(one.value, one.value) for one in WorkflowState], label="State")
    owner = user_filter("owner", "Owner")
    name = NameFilter(field_name="name", max_length=100, label="Name contains")
    window = WindowFilter("submitted", "Submitted within")
    submitted_after = MomentFilter(field_name="submitted", lookup_expr="gte", label="Submitted after")
    submitted_before = MomentFilter(field_name="submitted", lookup_expr="lt", label="Submitted before")

    class Meta:
        model = Workflow
        fields: list[str] = []


def _numbers(rows: Sequence[Row]) -> Mapping[Any, Row]:
    facts = facts_by_workflow([row["id"] for row in rows])
    now = timezone.now()
    ends = expected_ends(facts, [row["id"] for row in rows if row["state"] in _MAY_END], now)
    return {
        number: {
            **_counted(some),
            "expected_end": now + timedelta(seconds=ends[number]) if number in ends else None,
        }
        for number, some in facts.items()
    }


def _with_states(rows: QuerySet[Any]) -> QuerySet[Any]:
    return with_states(Workflow.objects.filter(pk__in=rows.order_by().values("pk")))


def _states(rows: QuerySet[Any]) -> Mapping[Any, Any]:
    return dict(_with_states(rows).values_list("id", "state"))


def _of_all(name: str) -> Callable[[QuerySet[Any]], Mapping[Any, Any]]:
    """One of the numbers of all rows of a list, which has few."""

    def values(rows: QuerySet[Any]) -> Mapping[Any, Any]:
        found = _numbers(list(_with_states(rows).values("id", "state")))
        return {number: row[name] for number, row in found.items()}

    return values


ORDERINGS: Final[Mapping[str, Computed]] = {
    "state": Computed(models.TextField(), _states),
    "progress": Computed(models.IntegerField(), _of_all("progress")),
    "expected_end": Computed(models.DateTimeField(), _of_all("expected_end")),
}
"""What the list can be ordered by besides its columns in the database."""


def _counted(facts: Sequence[PackageFact]) -> dict[str, Any]:
    by = Counter(fact.status for fact in facts)
    total = len(facts)
    done = by[_P.SUCCESSFUL]
    return {
        "packages": total,
        "progress": done * 100 // (total - by[_P.CANCELED]) if total > by[_P.CANCELED] else None,
        "successful": done,
        "at_work": by[_P.LAUNCHED] + by[_P.SCHEDULED],
        "failed": by[_P.FAILED],
        "canceled": by[_P.CANCELED],
        "failures": sum(sum(fact.failures.values()) for fact in facts),
    }


WORKFLOWS = Columns(
    Workflow,
    (
        Column("id", "Workflow", "id"),
        Column("name", "Name", "name"),
        Column("owner", "Owner"),
        Column("state", "State", "status"),
        Batch(
            (
                Column("progress", "Progress", "progress", help="successful packages, in percent of those not dropped"),
                Column("failed", "Failed", "number", help="packages that have failed and are not retried"),
                Column("failures", "Failed jobs", "number", help="failed tries of all packages so far"),
                Column("packages", "Packages", "number", shown=False),
                Column("successful", "Successful", "number", shown=False),
                Column("at_work", "In jobs", "number", shown=False),
                Column("canceled", "Dropped", "number", shown=False, help="packages that were dropped or killed"),
                Column(
                    "expected_end",
                    "Expected end",
                    "ago",
                    help="from what like packages took; empty when unknown, or when something has failed",
                ),
            ),
            _numbers,
            ("id", "state"),
        ),
        Column("submitted", "Submitted", "ago"),
        Column("container", "Container", "name", shown=False, help="where all files of the workflow come together"),
    ),
)
"""Columns of the list of workflows."""
