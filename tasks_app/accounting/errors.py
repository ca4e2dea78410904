"""The errors that a task's jobs met most often."""

from __future__ import annotations

from django.db import connection


def errors_of(task_id: int) -> list[tuple[str, int, str, int]]:
    """(component, code, an example of the text, jobs) of a task's failed jobs, the most frequent first.

    Each job counts once, for the error that says most: the payload's own before the pilot's that follows from it.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT component, code, min(diag), count(*) FROM (
                SELECT DISTINCT ON (j.pandaid) j.pandaid, e.* FROM jobs j, LATERAL (VALUES
                    (1, 'exe', exeerrorcode, exeerrordiag), (2, 'pilot', piloterrorcode, piloterrordiag),
                    (3, 'ddm', ddmerrorcode, ddmerrordiag),
                    (4, 'jobdispatcher', jobdispatchererrorcode, jobdispatchererrordiag),
                    (5, 'sup', superrorcode, superrordiag),
                    (6, 'taskbuffer', taskbuffererrorcode, taskbuffererrordiag)) e (rank, component, code, diag)
                 WHERE j.jeditaskid = %s AND j.jobstatus = 'failed' AND coalesce(e.code, 0) <> 0
                 ORDER BY j.pandaid, e.rank) main
             GROUP BY 1, 2 ORDER BY 4 DESC, 1, 2 LIMIT 5
            """,
            [task_id],
        )
        return cursor.fetchall()
