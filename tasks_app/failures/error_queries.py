"""The errors that explain failed jobs, asked of the database."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import connection
from django.db.models import F, Func, QuerySet, TextField

from tasks_app.domain.job_errors import (
    ALL_FIELDS,
    COMPONENTS,
    ENDED_BADLY,
    ERRORS_OF_J,
    NAMES,
    TRANS_EXIT,
    JobError,
    statement,
)
from tasks_app.models import Job
from tasks_app.refining.offered import MERGES

# ruff: noqa: S608 - names of our own columns
_CODES: Final = ", ".join([*(f"{part.name}errorcode" for part in COMPONENTS), "transexitcode"])
_SAID: Final = " || ".join(f"coalesce({part.name}errordiag, '')" for part in COMPONENTS)
# Jobs with the same codes have the same main error, so it is worked out once for all of them.
_GROUPS: Final = f"""
SELECT e.component, e.code, (array_agg(e.diag ORDER BY j.pandaid DESC) FILTER (WHERE e.diag <> ''))[1],
       sum(alike.jobs)::bigint, max(alike.last_at), max(alike.last)
  FROM (SELECT count(*) AS jobs, max(modificationtime) AS last_at, max(pandaid) AS last,
               max(pandaid) FILTER (WHERE {_SAID} <> '') AS last_with_text
          FROM jobs WHERE jeditaskid = %s AND jobstatus = 'failed' GROUP BY {_CODES}) alike
  JOIN jobs j ON j.pandaid = coalesce(alike.last_with_text, alike.last)
  LEFT JOIN LATERAL (SELECT * FROM {ERRORS_OF_J} said ORDER BY rank LIMIT 1) e ON true
 GROUP BY 1, 2 ORDER BY e.component IS NULL, 4 DESC, 1, 2
"""


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Failed jobs of a task with the same main error, which has the text of the last of them that has one; None of those of
    which no part gave a code. `last`: the last of these jobs."""

    error: JobError | None
    jobs: int
    last_at: datetime | None
    last: int


def error_groups(task_id: int) -> list[ErrorGroup]:
    """The failed jobs of a task by main error, most frequent first; those without one last. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(_GROUPS, [task_id])
        return [
            ErrorGroup(JobError(component, code, diag or "") if component else None, *more)
            for component, code, diag, *more in cursor.fetchall()
        ]


def errors_of(task_id: int) -> list[tuple[JobError, int]]:
    """The main errors of a task's failed jobs, each with how many jobs have it; most frequent first."""
    return [(group.error, group.jobs) for group in error_groups(task_id) if group.error is not None]


def failed_merges(task_id: int) -> int:
    """How many of a task's failed jobs were to merge outputs."""
    return Job.objects.filter(task_id=task_id, status="failed", processing_type=MERGES).count()


class MainError(Func):
    """The key of a job's main error, such as `pilot:1137`; null without one."""

    output_field = TextField()

    def __init__(self) -> None:
        super().__init__(*(F(name) for name in ALL_FIELDS))

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **context: Any) -> tuple[str, Any]:
        columns = [compiler.compile(one)[0] for one in self.get_source_expressions()]
        errors = statement(dict(zip(ALL_FIELDS, columns, strict=True)))
        return f"(SELECT said.component || ':' || said.code FROM {errors} said ORDER BY said.rank LIMIT 1)", ()


def with_main_error(jobs: QuerySet[Job], component: str, code: str) -> QuerySet[Job]:
    """Jobs that ended badly and of which this is the main error; none for a component that does not exist."""
    if component not in NAMES:
        return jobs.none()
    part = next((part for part in COMPONENTS if part.name == component), None)
    if part is None:
        few = jobs.filter(**{f"{TRANS_EXIT}__contains": code})
    elif re.fullmatch("-?[0-9]{1,10}", code):
        either = [number for number in (int(code), -int(code)) if -(2**31) <= number < 2**31]
        few = jobs.filter(**{f"{part.code_field}__in": either})
    else:
        return jobs.none()
    # The expression is asked only of jobs with that code.
    return few.filter(status__in=ENDED_BADLY).alias(main_error=MainError()).filter(main_error=f"{component}:{code}")
