"""How many input files of tasks may be removed now, for the dialog of that command."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from django.db.models import Sum

from jedisite.vocabulary.words import plural, thousands
from tasks_app.domain.states import DatasetStatus
from tasks_app.models import Dataset
from tasks_app.models.dataset import INPUT_TYPES

_COUNTERS: Final = ("files", "files_used", "files_finished", "files_failed", "files_missing")


def sentence_of(tasks: Collection[int]) -> str:
    """`5 input files can be removed: 3 wait, 2 have failed. 4 are in jobs and stay.` One query."""
    masters = Dataset.objects.filter(task_id__in=list(tasks), type__in=INPUT_TYPES, master_id=None)
    sums = masters.exclude(status=DatasetStatus.REMOVED).aggregate(*map(Sum, _COUNTERS))
    files, used, finished, failed, gone = (int(sums[f"{name}__sum"] or 0) for name in _COUNTERS)
    in_jobs, waiting = max(used - finished - failed, 0), max(files - used, 0)
    if not waiting + failed + gone:
        if not in_jobs:
            return "No input file can be removed: all were processed." if finished else "No input file is known yet."
        are = "the only one that is left is in a job" if in_jobs == 1 else f"all {thousands(in_jobs)} left are in jobs"
        return f"No input file can be removed at the moment: {are}."
    kinds = [
        f"{plural(count, one, many)}"
        for count, one, many in (
            (waiting, "waits", "wait"),
            (failed, "has failed", "have failed"),
            (gone, "is lost or missing", "are lost or missing"),
        )
        if count
    ]
    said = f"{plural(waiting + failed + gone, 'input file')} can be removed: {', '.join(kinds)}."
    if in_jobs:
        said += f" {plural(in_jobs, 'is in a job and stays', 'are in jobs and stay')}."
    return said
