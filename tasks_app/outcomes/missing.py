"""Outputs of a task that data management no longer has, or that are gone from this site's own storage."""

from __future__ import annotations

from pathlib import Path

from tasks_app.ddm import data_management
from tasks_app.ddm.addresses import Roots, is_below, storage_path
from tasks_app.ddm.base import UnknownDatasetError
from tasks_app.domain.states import FileStatus
from tasks_app.models import Dataset, File


def missing_outputs(task_id: int, most: int) -> list[str]:
    """Names of outputs that the task made and that are not there any more, at most `most`, by dataset and name."""
    missing: list[str] = []
    own = _storage_of_site()
    made = Dataset.objects.filter(task_id=task_id, type="output").order_by("id").values_list("id", "name")
    for dataset_id, name in made:
        files = File.objects.of_dataset(task_id, dataset_id, "output", FileStatus.FINISHED)
        finished = {lfn: (scope or "", surl) for lfn, scope, surl in files.values_list("lfn", "scope", "surl")}
        gone = set(finished)
        try:
            for page in data_management().list_files(name, all_attempts=True):
                listed = gone.intersection(file.lfn for file in page)
                gone -= {lfn for lfn in listed if not own or _is_there(own, lfn, *finished[lfn])}
        except UnknownDatasetError:
            pass  # all of it is gone
        missing += sorted(gone)
        if len(missing) >= most:
            break
    return missing[:most]


def _storage_of_site() -> list[Path]:
    """The site's own storage; none where it cannot be seen, as on a machine that has not mounted it: then nothing is judged."""
    own = Roots().own
    try:
        return own if any(own[-1].iterdir()) else []
    except OSError:
        return []


def _is_there(own: list[Path], lfn: str, scope: str, surl: str | None) -> bool:
    """Whether a file is where it was stored, as far as that is this site's own storage."""
    return not is_below(surl or "", scope, lfn, own) or storage_path(own[-1], scope, lfn).is_file()
