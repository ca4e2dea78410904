"""What the list of a workflow's packages shows and is filtered by; what packages do is read by `package_facts`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, Final

import django_filters
from django.core.validators import RegexValidator
from django.db.models import IntegerField, Max, QuerySet, Value
from django.db.models.functions import Cast, Left, Length, Right

from jedisite.web.columns import Batch, Column, Columns, Row
from tasks_app.lists.filtersets import IdFilter, StatusFilter, text
from tasks_app.models import File, Job, JobArchive, WorkflowPackage
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.workflows.package_facts import PackageFact, facts_by_workflow
from tasks_app.workflows.rules.document_fields import MOST_PACKAGES, MOST_STAGES
from tasks_app.workflows.rules.package_states import PackageStatus

Packages = QuerySet[Any]
"""Of rows of WorkflowPackage, with what `with_places` adds."""
LINE: Final = r"^[0-9]{3}/[0-9]{3,5}\Z"
_LINE_SAID: Final = "Write a line as its stage and its number, such as 001/002."


def with_places(packages: Packages) -> Packages:
    """The packages with `stage`, `line` (such as 001/002) and `sequence`, which their paths hold."""
    return packages.annotate(
        stage=Cast(Left("path", 3), IntegerField()),
        line=Left("path", Length("path") - Value(4)),
        sequence=Cast(Right("path", 3), IntegerField()),
    )


class PackageFilter(django_filters.FilterSet):
    """Packages that stand `with_places`. What they do is worked out for all packages of their workflows, at most once."""

    status = StatusFilter(choices=[(one.value, one.value) for one in PackageStatus], method="in_states", label="State")
    stage = django_filters.NumberFilter(
        field_name="stage", min_value=1, max_value=MOST_STAGES, decimal_places=0, label="Stage"
    )
    line = django_filters.CharFilter(
        field_name="line", max_length=9, validators=[RegexValidator(LINE, _LINE_SAID)], label="Line"
    )
    sequence = django_filters.NumberFilter(
        field_name="sequence", min_value=1, max_value=MOST_PACKAGES, decimal_places=0, label="Place in the line"
    )
    software = text("software", 255, "Software")
    task = IdFilter("task_id", label="Task")
    reason = django_filters.CharFilter(method="failed_for", max_length=500, label="Failure contains")
    site = django_filters.CharFilter(method="at_site", max_length=128, label="Node (queue of its job)")

    class Meta:
        model = WorkflowPackage
        fields: list[str] = []

    @cached_property
    def facts(self) -> Mapping[tuple[int, str], PackageFact]:
        assert self.queryset is not None
        workflows = list(self.queryset.order_by().values_list("workflow_id", flat=True).distinct())
        return {(number, fact.path): fact for number, some in facts_by_workflow(workflows).items() for fact in some}

    def _where(self, queryset: Packages, holds: Callable[[PackageFact], bool]) -> Packages:
        paths: dict[int, list[str]] = {}
        for (number, path), fact in self.facts.items():
            if holds(fact):
                paths.setdefault(number, []).append(path)
        if not paths:
            return queryset.none()
        found = queryset.none()
        for number, some in paths.items():
            found = found | queryset.filter(workflow_id=number, path__in=some)
        return found

    def in_states(self, queryset: Packages, name: str, value: list[str]) -> Packages:
        return self._where(queryset, lambda fact: fact.status.value in value)

    def failed_for(self, queryset: Packages, name: str, value: str) -> Packages:
        """Packages that have failed at least once for a reason that holds this text."""
        wanted = value.casefold()
        return self._where(queryset, lambda fact: any(wanted in reason.casefold() for reason in fact.failures))

    def at_site(self, queryset: Packages, name: str, value: str) -> Packages:
        """Packages that have a job at this queue now."""
        return self._where(queryset, lambda fact: fact.site == value)


def _facts(rows: Sequence[Row]) -> Mapping[Any, Row]:
    by_workflow = facts_by_workflow({row["workflow_id"] for row in rows})
    of = {(number, fact.path): fact for number, some in by_workflow.items() for fact in some}
    last = _last_jobs([one for row in rows if (one := of[row["workflow_id"], row["path"]]).job_id is None])
    found = {}
    for row in rows:
        fact = of[row["workflow_id"], row["path"]]
        job = fact.job_id, fact.site, fact.since
        if fact.job_id is None:
            job = last.get((fact.task_id, fact.boundary), job)
        reason = max(fact.failures, key=lambda one: (fact.failures[one], one), default="")
        found[row["id"]] = {
            "status": fact.status.value,
            "job_id": job[0],
            "site": job[1],
            "failures": sum(fact.failures.values()),
            "reason": reason,
            "since": job[2],
        }
    return found


def _last_jobs(facts: Sequence[PackageFact]) -> dict[tuple[int | None, int | None], tuple[int, str, datetime | None]]:
    """The last job of each package that has none now, by task and group: its id, queue, and when it was made."""
    groups = {(fact.task_id, fact.boundary) for fact in facts if fact.task_id is not None}
    if not groups:
        return {}
    read = File.objects.filter(
        task_id__in={task for task, _ in groups}, boundary_id__in={one for _, one in groups}, type__in=INPUT_TYPES
    )
    rows = read.order_by().values_list("task_id", "boundary_id").annotate(last=Max("job_id"))
    job_of = {(task, boundary): job for task, boundary, job in rows if job and (task, boundary) in groups}
    jobs = {
        job: (job, site or "", made)
        for kind in (JobArchive, Job)
        for job, site, made in kind.objects.filter(pk__in=list(job_of.values())).values_list(
            "id", "site", "creation_time"
        )
    }
    return {key: jobs[job] for key, job in job_of.items() if job in jobs}


PACKAGES = Columns(
    WorkflowPackage,
    (
        Column("id", "Number", "id", shown=False),
        Column("path", "Package", help="stage, line and place in the line"),
        Column("software", "Software", "name"),
        Batch(
            (
                Column("status", "State", "status"),
                Column("failures", "Failed jobs", "number"),
                Column("reason", "Most frequent failure", "sentence"),
                Column("job_id", "Job", "id", help="the job that has it, or had it last"),
                Column("site", "Node", help="queue of its job"),
                Column("since", "Job made", "ago"),
            ),
            _facts,
            ("id", "workflow_id", "path"),
        ),
        Column("task_id", "Task", "id"),
        Column("stage", "Stage", "number", shown=False),
        Column("line", "Line", shown=False),
        Column("sequence", "Place in the line", "number", shown=False),
        Column("workflow_id", "Workflow", "id", shown=False),
        Column("priority", "Own priority", "number", shown=False, help="of its jobs, when it is not that of its task"),
        Column("boundary", "Subjob", "number_plain", shown=False, help="its group of files in the task"),
    ),
)
"""Columns of the list of packages."""
