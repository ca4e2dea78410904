"""Outputs without which a job may end well (`allowNoOutput` of their items). Logs are never among them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import psycopg

from jedisite.database.sql import numbers
from tasks_app.params.dataset_attributes import OPTIONAL

_OF_JOBS = f"""
SELECT f.pandaid, f.fileid, f.lfn FROM job_files f JOIN jedi_datasets d ON d.datasetid = f.datasetid
 WHERE f.pandaid = ANY(%s::bigint[]) AND f.type IN ('output', 'trn_output')
   AND '{OPTIONAL}' = ANY(string_to_array(d.attributes, ',')) ORDER BY f.row_id
"""  # noqa: S608 - a constant of ours


class OptionalOutput(NamedTuple):
    job_id: int
    file_id: int
    lfn: str


def of_jobs(cursor: psycopg.Cursor[tuple[int, int, str]], jobs: Iterable[int]) -> list[OptionalOutput]:
    """Those of these jobs, in the order of the jobs' files."""
    cursor.execute(_OF_JOBS, [numbers(jobs)])
    return [OptionalOutput._make(row) for row in cursor.fetchall()]
