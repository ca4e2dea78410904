"""Outputs of a task that data management no longer has, or that are gone from this site's own storage."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from tasks_app.ddm import data_management
from tasks_app.ddm.addresses import storage_path
from tasks_app.ddm.base import UnknownDatasetError
from tasks_app.ddm.local import file_url
from tasks_app.models import Dataset, File
from tasks_app.states import FileStatus


def missing_outputs(task_id: int, most: int) -> list[str]:
    """Names of outputs that the task made and that are not there any more, at most `most`, by dataset and name."""
    missing: list[str] = []
    root = _storage_of_site()
    made = Dataset.objects.filter(task_id=task_id, type="output").order_by("id").values_list("id", "name")
    for dataset_id, name in made:
        files = File.objects.of_dataset(task_id, dataset_id, "output", FileStatus.FINISHED)
        finished = {lfn: (scope or "", surl) for lfn, scope, surl in files.values_list("lfn", "scope", "surl")}
        gone = set(finished)
        try:
            for page in data_management().list_files(name, all_attempts=True):
                listed = gone.intersection(file.lfn for file in page)
                gone -= {lfn for lfn in listed if root is None or _is_there(root, lfn, *finished[lfn])}
        except UnknownDatasetError:
            pass  # all of it is gone
        missing += sorted(gone)
        if len(missing) >= most:
            break
    return missing[:most]


def _storage_of_site() -> Path | None:
    """The site's own storage; None where it cannot be seen, as on a machine that has not mounted it: then nothing is judged."""
    root = Path(settings.JEDI_STORAGE).resolve()
    try:
        return root if any(root.iterdir()) else None
    except OSError:
        return None


def _is_there(root: Path, lfn: str, scope: str, surl: str | None) -> bool:
    """Whether a file is where it was stored, as far as that is this site's own storage."""
    place = storage_path(root, scope, lfn)
    return surl != file_url(place) or place.is_file()
