"""Jobs of users who have had less than the others are moved up, where others have had more (priority massage).

Jobs of analysis and of users' tests only, merging left out. What counts are running jobs and those that ended within a day.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction

from jedisite.database.sql import hot_cursor, texts
from jedisite.database.sql import numbers as as_array
from tasks_app.domain.priorities import Raise, SiteUsage, massage
from tasks_app.domain.users_work import users_jobs
from tasks_app.upkeep.overdue import MERGE

# ruff: noqa: S608 - every piece is a constant of this module
LATELY: Final = timedelta(days=1)
_MINE = f"{users_jobs('j')} AND NOT {MERGE} AND j.computingsite IS NOT NULL"
_USER = "CASE WHEN coalesce(j.workinggroup, '') = '' THEN coalesce(j.produsername, '') ELSE '' END"
_GROUP = "coalesce(j.workinggroup, '')"
_WAITS = f"SELECT EXISTS (SELECT 1 FROM jobs j WHERE j.jobstatus = 'activated' AND {_MINE})"
_USAGE = f"""
SELECT {_USER}, {_GROUP}, j.computingsite, count(*) FILTER (WHERE j.jobstatus <> 'activated'),
       count(*) FILTER (WHERE j.jobstatus = 'activated'),
       coalesce(max(j.currentpriority) FILTER (WHERE j.jobstatus = 'activated'), 0)
  FROM jobs j WHERE {_MINE}
   AND (j.jobstatus IN ('running', 'activated') OR (j.jobstatus IN ('finished', 'failed') AND j.endtime > %s))
 GROUP BY 1, 2, 3
"""
_RAISE = f"""
WITH best AS (
    SELECT found.pandaid, r.higher
      FROM unnest(%s::text[], %s::text[], %s::text[], %s::int[], %s::int[], %s::int[]) r (usr, grp, site, jobs, least, higher)
     CROSS JOIN LATERAL (
           SELECT j.pandaid FROM jobs j
            WHERE j.computingsite = r.site AND j.jobstatus = 'activated' AND {_MINE} AND {_USER} = r.usr AND {_GROUP} = r.grp
              AND j.currentpriority >= r.least
            ORDER BY j.currentpriority DESC, j.pandaid LIMIT r.jobs FOR UPDATE SKIP LOCKED) found)
UPDATE jobs j SET currentpriority = j.currentpriority + best.higher, modificationtime = clock_timestamp()
  FROM best WHERE j.pandaid = best.pandaid
"""


def steps_for_users(now: datetime) -> list[Raise]:
    """Compare all users once: whose jobs are to be moved up, where, and by how much. None when no job waits."""
    with hot_cursor() as cursor:
        cursor.execute(_WAITS)
        row = cursor.fetchone()
        if not (row and row[0]):
            return []
        cursor.execute(_USAGE, [now - LATELY])
        usages = [
            SiteUsage((user, group), site, used, activated, highest)
            for user, group, site, used, activated, highest in cursor.fetchall()
        ]
    return list(massage(usages))


@transaction.atomic
def raise_priorities(steps: Sequence[Raise]) -> int:
    with hot_cursor() as cursor:
        cursor.execute(
            _RAISE,
            [
                texts(step.who[0] for step in steps),
                texts(step.who[1] for step in steps),
                texts(step.site for step in steps),
                as_array(step.jobs for step in steps),
                as_array(step.least for step in steps),
                as_array(step.by for step in steps),
            ],
        )
        return cursor.rowcount
