"""The errors that explain failed jobs, asked of the database."""

from __future__ import annotations

import re
from typing import Any, Final

from django.db import connection
from django.db.models import F, Func, QuerySet, TextField

from tasks_app.domain.job_errors import ALL_FIELDS, COMPONENTS, ERRORS_OF_J, NAMES, TRANS_EXIT, JobError, statement
from tasks_app.models import Job

# ruff: noqa: S608 - names of our own columns
_ERRORS: Final = f"""
SELECT component, code, (array_agg(diag ORDER BY pandaid DESC) FILTER (WHERE diag <> ''))[1], count(*)
  FROM (SELECT j.pandaid, e.* FROM jobs j CROSS JOIN LATERAL (SELECT * FROM {ERRORS_OF_J} said ORDER BY rank LIMIT 1) e
         WHERE j.jeditaskid = %s AND j.jobstatus = 'failed') main
 GROUP BY 1, 2 ORDER BY 4 DESC, 1, 2
"""


def errors_of(task_id: int) -> list[tuple[JobError, int]]:
    """The main errors of a task's failed jobs, each with the text of the last job that has one, and how many jobs have it; most
    frequent first."""
    with connection.cursor() as cursor:
        cursor.execute(_ERRORS, [task_id])
        return [(JobError(component, code, diag), jobs) for component, code, diag, jobs in cursor.fetchall()]


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
    """Jobs of which this is the main error; none for a component that does not exist."""
    if component not in NAMES:
        return jobs.none()
    part = next((part for part in COMPONENTS if part.name == component), None)
    if part is None:
        few = jobs.filter(**{f"{TRANS_EXIT}__contains": code})
    elif re.fullmatch("-?[0-9]{1,9}", code):
        few = jobs.filter(**{f"{part.code_field}__in": [int(code), -int(code)]})
    else:
        return jobs.none()
    # The expression is asked only of jobs with that code.
    return few.alias(main_error=MainError()).filter(main_error=f"{component}:{code}")
