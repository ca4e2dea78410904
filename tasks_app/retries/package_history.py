"""How packages of workflows have failed before: from the jobs that had them, which is all that is kept of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import psycopg

from jedisite.database.sql import numbers
from tasks_app.domain.failure_reasons import history_of
from tasks_app.domain.job_errors import ERRORS_OF_J, JobError

# ruff: noqa: S608 - every piece is a constant of ours
_FAILED_BEFORE: Final = """
SELECT b.job, coalesce(e.errors, '[]') FROM before b JOIN {table} j ON j.pandaid = b.pandaid AND j.jobstatus = 'failed'
 CROSS JOIN LATERAL (
       SELECT json_agg(json_build_array(v.component, v.code, v.diag) ORDER BY v.rank) AS errors FROM {errors} v) e"""
# A job of a package reads files of its group only, and each record of a file is of one group.
_EARLIER: Final = f"""
WITH one AS (
    SELECT pandaid AS job, min(fileid) AS file FROM job_files
     WHERE pandaid = ANY(%s::bigint[]) AND type IN ('input', 'pseudo_input') GROUP BY 1),
before AS (SELECT DISTINCT o.job, f.pandaid FROM one o JOIN job_files f ON f.fileid = o.file AND f.pandaid < o.job)
{_FAILED_BEFORE.format(table="jobs", errors=ERRORS_OF_J)} UNION ALL
{_FAILED_BEFORE.format(table="jobs_archive", errors=ERRORS_OF_J)}
"""


def histories(cursor: psycopg.Cursor[Any], jobs: Sequence[int], limits: Mapping[str, int]) -> dict[int, dict[str, int]]:
    """For each of these jobs how often those failed that had its package before it, by the reason that limits them.

    Jobs without any are left out. No query without limits."""
    if not limits:
        return {}
    cursor.execute(_EARLIER, [numbers(jobs)])
    found: dict[int, list[list[JobError]]] = {}
    for job_id, errors in cursor:
        found.setdefault(job_id, []).append([JobError(*error) for error in errors])
    return {job_id: history_of(failures, limits) for job_id, failures in found.items()}
