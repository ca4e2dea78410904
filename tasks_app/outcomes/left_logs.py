"""Logs of jobs that end while their outputs are gathered: they lie where the pilot left them, or where they have been brought."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import psycopg

from jedisite.database.sql import numbers
from tasks_app.models.dataset import LOG_TYPES
from tasks_app.outcomes.job_outputs import Output, outputs_of

Stored = tuple[tuple[Output, Mapping[str, Any]], ...]

_LIES = """
SELECT r.pandaid, coalesce(r.report::text, '{}'), q.lfn, CASE WHEN q.status = 'done' THEN q.destination ELSE q.source END, q.url
  FROM transfer_rules r JOIN transfer_requests q ON q.rule_id = r.id
 WHERE r.pandaid = ANY(%s::bigint[]) AND r.kind = 'gather' AND NOT r.is_settled ORDER BY r.id
"""


def left_logs(cursor: psycopg.Cursor[Any], jobs: Iterable[int]) -> dict[int, Stored]:
    """The logs that pilots of these jobs have reported, with the endpoints and addresses that they have now.

    Of a rule that has been acted upon nothing is known any more. Two statements at most.
    """
    cursor.execute(_LIES, [numbers(jobs)])
    reports: dict[int, Mapping[str, Any]] = {}
    lies: dict[tuple[int, str], tuple[str, str]] = {}
    for job, report, lfn, at, url in cursor.fetchall():
        reports[job] = json.loads(report)
        lies[job, lfn] = (at, url)
    expected = outputs_of(cursor, sorted(reports)) if reports else {}
    return {job: tuple(_placed(job, report, expected.get(job, ()), lies)) for job, report in reports.items()}


def _placed(
    job: int, report: Mapping[str, Any], expected: Sequence[Output], lies: Mapping[tuple[int, str], tuple[str, str]]
) -> Iterable[tuple[Output, Mapping[str, Any]]]:
    for output in expected:
        if output.type in LOG_TYPES and output.lfn in report:
            said = report[output.lfn]
            at, url = lies.get((job, output.lfn), (output.endpoint, ""))
            yield output._replace(endpoint=at), {**said, "surl": url or said["surl"]}
