"""Mails on failures of packages: one for all failures of a workflow in a while, whether or not the packages are restarted.

Failures are read from `job_failures`, into which an agent books each failed job with its error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from django.db import transaction
from django.db.models import F

from jedisite.database.sql import hot_cursor, numbers
from tasks_app.domain.failure_reasons import reasons_of
from tasks_app.domain.job_errors import JobError
from tasks_app.models import JobFailure, Notification, Workflow, WorkflowPackage
from tasks_app.params.faults import ParamErrors
from tasks_app.workflows.package_facts import package_facts
from tasks_app.workflows.rules.failure_mail import Failing, FailingPackage, mail_of
from tasks_app.workflows.submitting_workflows import definition_of

TOGETHER: Final = timedelta(minutes=15)
"""After a mail, failures of the same workflow are gathered for so long."""
_LAST: Final = timedelta(hours=1)
_SETTLED: Final = timedelta(minutes=1)
"""Failures that are younger may still have company that is being booked."""
MOST_READ: Final = 20_000
"""Failures that one mail counts."""
_DUE: Final = """
SELECT DISTINCT w.id FROM (
    SELECT jeditaskid, max(ended) AS last FROM job_failures WHERE ended > %(since)s AND ended <= %(until)s GROUP BY 1) f
 CROSS JOIN LATERAL (SELECT workflow_id FROM workflow_packages p WHERE p.jeditaskid = f.jeditaskid LIMIT 1) p
  JOIN workflows w ON w.id = p.workflow_id
 WHERE f.last > coalesce(w.failures_told, w.submitted) AND (w.failures_told IS NULL OR w.failures_told <= %(before)s)
 ORDER BY 1 LIMIT %(limit)s"""
# A job of a package reads files of its group only.
_GROUPS: Final = """
SELECT f.pandaid, max(c.boundaryid) FROM unnest(%s::bigint[]) f (pandaid)
  JOIN job_files jf ON jf.pandaid = f.pandaid AND jf.type IN ('input', 'pseudo_input')
  JOIN jedi_dataset_contents c ON c.fileid = jf.fileid AND c.boundaryid IS NOT NULL
 GROUP BY 1"""


class _Row(NamedTuple):
    id: int
    task_id: int
    site: str
    node: str
    component: str
    code: str
    text: str


def due(limit: int, now: datetime) -> list[int]:
    """Workflows of which failures have not been told, but for those of which a mail was written a short while ago."""
    until = now - _SETTLED
    values = {"since": until - _LAST, "until": until, "before": until - TOGETHER, "limit": limit}
    with hot_cursor() as cursor:
        cursor.execute(_DUE, values)
        return [number for (number,) in cursor.fetchall()]


@transaction.atomic
def write_mail(workflow_id: int, now: datetime) -> bool:
    """Leave a mail on the failures of a workflow since the last one. Returns whether one was left: failures of packages that
    are quiet are not told."""
    workflow = Workflow.objects.select_for_update().get(pk=workflow_id)
    until = now - _SETTLED
    told = workflow.failures_told or workflow.submitted
    if told >= until or (workflow.failures_told is not None and told > until - TOGETHER):
        return False
    Workflow.objects.filter(pk=workflow_id).update(failures_told=until)
    tasks = list(
        WorkflowPackage.objects.filter(workflow=workflow, task_id__isnull=False)
        .order_by("task_id")
        .values_list("task_id", flat=True)
        .distinct()
    )
    rows = [
        _Row._make(row)
        for row in JobFailure.objects.filter(task_id__in=tasks, ended__gt=told, ended__lte=until)
        .order_by("id")
        .values_list(
            "id",
            "task_id",
            "site",
            "node",
            F("fingerprint__component"),
            F("fingerprint__code"),
            F("fingerprint__example"),
        )[:MOST_READ]
    ]
    failing = _failing(workflow, rows)
    if not failing:
        return False
    mail = mail_of(f"{workflow.name} ({workflow.pk})", failing)
    Notification.objects.create(
        task_id=failing[0].task_id, workflow_id=workflow_id, status=mail.what[:64], reason=mail.text
    )
    return True


def _failing(workflow: Workflow, rows: Sequence[_Row]) -> list[FailingPackage]:
    """The packages that are to be told, in order, each with its failures."""
    try:
        _, graph = definition_of(workflow)
    except ParamErrors:  # a definition of before that is refused today
        return []
    group_of = _groups_of(rows)
    by_group: dict[tuple[int, int | None], list[Failing]] = {}
    for row in rows:
        error = JobError(row.component, row.code, row.text) if row.component else None
        said = error.sentence if error is not None else "The job failed, and no part of it said why."
        failure = Failing(reasons_of(error)[0], said, row.site, row.node, row.id)
        by_group.setdefault((row.task_id, group_of.get(row.id)), []).append(failure)
    found = []
    for node, fact in zip(graph.nodes, package_facts(workflow), strict=True):
        own = by_group.get((fact.task_id or 0, fact.boundary))
        if own and node.package.notify and fact.task_id is not None:
            found.append(FailingPackage(node.path, fact.software, fact.status, fact.task_id, own))
    return found


def _groups_of(rows: Sequence[_Row]) -> Mapping[int, int]:
    with hot_cursor() as cursor:
        cursor.execute(_GROUPS, [numbers(row.id for row in rows)])
        return dict(cursor.fetchall())
