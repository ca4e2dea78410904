"""The last words of payloads whose pilot kept them to itself: PanDA's pilot says only that executing failed, and every pilot
names an output that is not there as the site does, not as the user did.

They stand at the end of payload.stderr in the log archive, which is read before the report is booked, so that retry rules,
kinds of errors, pages and mails all see them. Only logs in this site's own storage are read, within bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog

from jedisite.agents import troubles
from jedisite.database.sql import hot_cursor, numbers, texts
from jedisite.processes.logs import sentence_of
from tasks_app.domain.job_errors import OUTPUT_MISSING, PAYLOAD_FAILED
from tasks_app.outcomes.final_reports import ME
from tasks_app.submission.secret_masking import masked_words

log = structlog.get_logger(__name__)
MOST_JOBS: Final = 10
"""Logs that are read in one pass of the adder: some are large, and reports must not wait for them."""
WROTE_NO: Final = "The command wrote no "
"""Begins the last line of our transforms when an output is not there. Of a payload that ended well, other last lines say nothing
of that."""
LONGEST: Final = 500
"""Characters that a job has room for."""
Read = Callable[[str, str, str], str]
"""The last line of the payload's stderr, by (address, name, scope) of a log archive; "" when it cannot be had."""

_SILENT = f"""
SELECT j.pandaid, f.lfn, coalesce(f.scope, ''), r.data -> f.lfn ->> 'surl', abs(j.piloterrorcode) = %(failed)s
  FROM (SELECT pandaid, data FROM job_output_report
         WHERE jobstatus = 'failed' AND NOT {troubles.left_aside("job", "pandaid")} ORDER BY pandaid LIMIT 1000) r
  JOIN jobs j USING (pandaid)
  JOIN job_files f ON f.pandaid = j.pandaid AND f.type = 'log'
 WHERE abs(j.piloterrorcode) IN (%(failed)s, %(missing)s)
   AND coalesce(j.exeerrordiag, '') = '' AND r.data -> f.lfn ->> 'surl' IS NOT NULL
 ORDER BY j.pandaid LIMIT %(most)s
"""  # noqa: S608 - constants


def tell(read: Read) -> int:
    """Give failed jobs that are about to be booked the last words of their payloads. Returns how many got some."""
    with hot_cursor() as cursor:
        cursor.execute(_SILENT, {"failed": PAYLOAD_FAILED, "missing": OUTPUT_MISSING, "most": MOST_JOBS, "agent": ME})
        silent = cursor.fetchall()
        words = {
            job: said
            for job, lfn, scope, surl, payload_failed in silent
            if (said := _said(read, job, surl, lfn, scope)) and (payload_failed or said.startswith(WROTE_NO))
        }
        if words:
            words = {job: said[:LONGEST] for job, said in masked_words(words).items()}
            cursor.execute(
                """UPDATE jobs j SET exeerrordiag = w.words FROM unnest(%s::bigint[], %s::text[]) w (id, words)
                    WHERE j.pandaid = w.id AND j.pandaid = ANY(%s::bigint[]) AND coalesce(j.exeerrordiag, '') = ''""",
                [numbers(words), texts(words.values()), numbers(words)],
            )
    return len(words)


def _said(read: Read, job: int, surl: str, lfn: str, scope: str) -> str:
    """A payload may have made the archive: whatever is wrong with it keeps no report from being booked."""
    try:
        return read(surl, lfn, scope)
    except Exception as exc:  # noqa: BLE001 - whatever it is
        log.warning("last_words.unreadable", job=job, error=sentence_of(exc))
        return ""
