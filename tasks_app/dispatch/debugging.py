"""Jobs whose pilots send the payload's output while it runs. The wish is a word among a job's special handlings."""

from __future__ import annotations

from django.db import connection

from tasks_app.domain.states import JOB_OPEN
from tasks_app.params.special_handling import DEBUG


def set_debug(job_id: int, on: bool) -> bool:
    """Ask for the output of an open job, or no longer. Returns False when the job has ended, or has no room for the word."""
    with connection.cursor() as cursor:
        cursor.execute(
            """UPDATE jobs SET specialhandling = nullif(array_to_string(
                      array_remove(string_to_array(coalesce(specialhandling, ''), ','), %(word)s)
                      || CASE WHEN %(on)s THEN ARRAY[%(word)s] ELSE '{}'::text[] END, ','), '')
                WHERE pandaid = %(job)s AND jobstatus = ANY(%(open)s) AND length(coalesce(specialhandling, '')) < 74""",
            {"job": job_id, "on": on, "word": DEBUG, "open": sorted(JOB_OPEN)},
        )
        return bool(cursor.rowcount == 1)
