"""`manage.py download TASK`: copies what a task made out of this site's storage, checked against the books."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from tasks_app import fetching
from tasks_app.gpi.client import ApiError, save
from tasks_app.models import Dataset, File, Task
from tasks_app.states import FileStatus


class Command(BaseCommand):
    help = (
        "Copy the outputs of a task into a folder, with their size and checksum compared with the books. Files that are "
        "there already are kept; none is overwritten. Exits with 1 when a file cannot be had. It reads this machine's storage; "
        "elsewhere, task.download(folder) of the Python client does the same over HTTP."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("task", type=int)
        parser.add_argument("--to", type=Path, metavar="FOLDER", help="where to (default: task-<number>)")
        parser.add_argument("--logs", action="store_true", help="the log archives, too")

    def handle(self, *args: Any, **options: Any) -> None:
        task_id, folder = options["task"], options["to"] or Path(f"task-{options['task']}")
        if not Task.objects.filter(pk=task_id).exists():
            raise CommandError(f"there is no task {task_id}")
        folder.mkdir(parents=True, exist_ok=True)
        types = ("output", "log") if options["logs"] else ("output",)
        found, faults = 0, 0
        for dataset in Dataset.objects.filter(task_id=task_id, type__in=types).order_by("id").values_list("id", flat=True):
            stored = File.objects.all_of_dataset(dataset, task_id).filter(status=FileStatus.FINISHED).order_by("id")
            for file in stored.iterator():
                try:
                    self.stdout.write(str(_copied(file, folder)))
                    found += 1
                except (fetching.NoFileError, fetching.NotSentError, ApiError, OSError, ValueError) as exc:
                    self.stderr.write(str(exc))
                    faults += 1
        self.stderr.write(f"{found} files in {folder}" + (f", {faults} could not be had" if faults else ""))
        if faults:
            raise SystemExit(1)


def _copied(file: File, folder: Path) -> Path:
    row = {"id": file.id, "lfn": file.lfn, "size": file.size, "checksum": file.checksum}
    return save(row, folder, lambda have: fetching.open_made(file).pieces(have))
