"""Files of inputs that are cut into ranges of events. The books count ranges; a file is done when all of its ranges are."""

from __future__ import annotations

from dataclasses import dataclass

from jedisite.database.sql import hot_cursor

MOST_RANGES = 200_000
"""Of larger datasets the files are not counted: a page has to come at once."""


@dataclass(frozen=True, slots=True)
class RangedFiles:
    """Files of one dataset: all of them, those whose ranges are all finished, and those with a range that failed for good."""

    files: int = 0
    finished: int = 0
    failed: int = 0


_COUNT = """
SELECT datasetid, count(*), count(*) FILTER (WHERE done), count(*) FILTER (WHERE failed)
  FROM (SELECT datasetid, bool_and(status IN ('finished', 'partial')) AS done,
               bool_or(status = 'ready' AND coalesce(attemptnr >= maxattempt OR failedattempt >= maxfailure, false)) AS failed
          FROM jedi_dataset_contents
         WHERE jeditaskid = %(task)s AND datasetid = ANY(%(datasets)s::bigint[]) AND startevent IS NOT NULL
         GROUP BY datasetid, lfn) f
 GROUP BY datasetid
"""


def files_of_ranges(task_id: int, datasets: list[int]) -> dict[int, RangedFiles]:
    """The files behind the ranges of these datasets, by dataset id; datasets of whole files are not in it."""
    if not datasets:
        return {}
    with hot_cursor() as cursor:
        cursor.execute(_COUNT, {"task": task_id, "datasets": datasets})
        return {dataset: RangedFiles(*counts) for dataset, *counts in cursor}
