"""What jobs were to store, as their rows say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg


class Output(NamedTuple):
    """An output or log as the job's row says it should be."""

    job_id: int
    file_id: int
    type: str
    lfn: str
    scope: str
    dataset: str
    endpoint: str


def outputs_of(cursor: psycopg.Cursor[Any], jobs: Sequence[int]) -> dict[int, list[Output]]:
    """What these jobs were to store, by job."""
    cursor.execute(
        """SELECT pandaid, fileid, type, lfn, scope, dataset, destinationse FROM job_files
            WHERE pandaid = ANY(%s) AND type IN ('output', 'log', 'trn_output', 'trn_log') ORDER BY row_id""",
        [list(jobs)],
    )
    found: dict[int, list[Output]] = {}
    for row in cursor:
        found.setdefault(row[0], []).append(Output._make(row))
    return found
