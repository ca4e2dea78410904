"""Names of the outputs without which a job may end well, for its pilot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jedisite.database.sql import hot_cursor
from tasks_app.outcomes import optional_outputs
from tasks_app.params import special_handling


def name_optional(jobs: Iterable[dict[str, Any]], words: Sequence[str | None]) -> None:
    """Put `allowNoOutput`, names with commas, into the jobs that have such outputs. One statement, where any has."""
    of = {
        job["PandaID"]: job
        for job, said in zip(jobs, words, strict=True)
        if special_handling.has(said, special_handling.OPTIONAL)
    }
    if not of:
        return
    names = dict[int, list[str]]()
    with hot_cursor() as cursor:
        for one in optional_outputs.of_jobs(cursor, of):
            names.setdefault(one.job_id, []).append(one.lfn)
    for job_id, lfns in names.items():
        of[job_id]["allowNoOutput"] = ",".join(lfns)
