"""Outputs of a task that data management no longer has, or that are gone from the storages of this site."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from tasks_app.ddm import data_management
from tasks_app.ddm.addresses import Roots, is_below
from tasks_app.ddm.base import UnknownDatasetError
from tasks_app.domain.states import FileStatus
from tasks_app.models import Dataset, File


def missing_outputs(task_id: int, most: int) -> list[str]:
    """Names of outputs that the task made and that are not there any more, at most `most`, by dataset and name."""
    missing: list[str] = []
    look = Look()
    made = Dataset.objects.filter(task_id=task_id, type="output").order_by("id").values_list("id", "name")
    for dataset_id, name in made:
        files = File.objects.of_dataset(task_id, dataset_id, "output", FileStatus.FINISHED)
        finished = {lfn: (scope or "", surl) for lfn, scope, surl in files.values_list("lfn", "scope", "surl")}
        gone = set(finished)
        try:
            for page in data_management().list_files(name, all_attempts=True):
                listed = gone.intersection(file.lfn for file in page)
                gone -= {lfn for lfn in listed if look.has(lfn, *finished[lfn])}
        except UnknownDatasetError:
            pass  # all of it is gone
        missing += sorted(gone)
        if len(missing) >= most:
            break
    return missing[:most]


def _has_any(folder: Path) -> bool:
    try:
        return any(folder.iterdir())
    except OSError:
        return False


class Look:
    """The storages of this machine as they are now. Those that cannot be seen, as on a machine that has not mounted them, say
    nothing: what lies there is not judged."""

    def __init__(self) -> None:
        self._roots = Roots()

    @cached_property
    def _seen(self) -> list[list[Path]]:
        return [pair for pair in self._roots.served if _has_any(pair[-1])]

    def has(self, lfn: str, scope: str, surl: str | None) -> bool:
        """Whether a file is where it was stored, or in another storage of this site, as far as that can be seen."""
        if not any(is_below(surl or "", scope, lfn, pair) for pair in self._seen):
            return True
        return any(place.is_file() for place in self._roots.places(surl or "", scope, lfn))
