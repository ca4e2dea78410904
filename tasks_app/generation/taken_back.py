"""Sites from which jobs of a task were taken back lately."""

from __future__ import annotations

from brokerage_app.grid.configured import configuration
from jedisite.database.sql import hot_cursor
from tasks_app.domain.killcodes import MADE_ANEW, error_code

_TAKEN_BACK = """
SELECT DISTINCT computingsite FROM jobs
 WHERE jeditaskid = %s AND jobstatus = 'closed' AND computingsite IS NOT NULL
   AND (jobsubstatus = 'toreassign' OR taskbuffererrorcode = ANY(%s))
   AND endtime > clock_timestamp() - %s * interval '1 hour'
 ORDER BY computingsite
"""
_CODES = sorted(error_code(kill) for kill in MADE_ANEW)


def taken_back(task_id: int, vo: str) -> tuple[str, ...]:
    """Sites at which jobs of a task were closed to be made anew, in the time over which ended jobs count."""
    hours = configuration().get("anal_jobbroker", "TW_DONE_JOB_STAT", vo=vo)
    with hot_cursor() as cursor:
        cursor.execute(_TAKEN_BACK, [task_id, _CODES, hours])
        return tuple(site for (site,) in cursor)
