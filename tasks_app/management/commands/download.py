"""`manage.py download TASK`: copies what a task made out of this site's storage, checked against the books."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from itertools import chain
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.db.models import Sum

from jedisite.management.command_line import Suggesting
from jedisite.vocabulary.words import plural
from tasks_app.ddm import fetching
from tasks_app.domain.states import FileStatus, TaskStatus
from tasks_app.gpi.client import ApiError, save
from tasks_app.management.named import add_task, task_named
from tasks_app.models import Dataset, File, Task, Workflow, WorkflowPackage
from tasks_app.models.dataset import INPUT_TYPES


class Command(Suggesting):
    _is_read = True
    help = (
        "Copy the outputs of a task, or of a workflow named as its container is, into a folder, "
        "and check their sizes and checksums. Existing files are kept, "
        "none is overwritten. Exit code 1: a file could not be copied. It reads this machine's storage; "
        "elsewhere, task.download(folder) of the Python client does the same over HTTP."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_task(parser)
        parser.add_argument("--to", type=Path, metavar="FOLDER", help="target folder (default: task-<number>)")
        parser.add_argument("--logs", action="store_true", help="also copy the log archives")

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["task"].replace("\0", "").rstrip("/")
        workflow = Workflow.objects.filter(container=f"{name}/").first()
        task = None if workflow else task_named(options["task"], self.stderr)
        folder = options["to"] or Path(f"task-{task.id}" if task else f"workflow-{workflow.pk if workflow else ''}")
        types = ("output", "log") if options["logs"] else ("output",)
        packages = WorkflowPackage.objects.filter(workflow=workflow, task_id__isnull=False)
        tasks = [task.id] if task else [number for number in packages.values_list("task_id", flat=True) if number]
        sets = Dataset.objects.filter(task_id__in=tasks, type__in=types).order_by("id")
        made = [
            File.objects.all_of_dataset(one, own).filter(status=FileStatus.FINISHED).order_by("id")
            for one, own in sets.values_list("id", "task_id")
        ]
        if workflow:  # what packages of a line leave when they end says nothing to people
            made = [files.exclude(lfn__endswith=".ended") for files in made]
        there = sum(files.count() for files in made)
        if not there:
            said = _state(task, there) if task else f"no package of workflow {options['task']} has written a file yet"
            raise CommandError(f"nothing to copy: {said}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise CommandError(f"no folder can be made at {folder}: {exc.strerror}") from exc
        found, faults = 0, 0
        for file in chain.from_iterable(files.iterator() for files in made):
            try:
                copied = _copied(file, folder, options["task"].rstrip("/") if workflow else "")
                found += 1
            except (fetching.NoFileError, fetching.NotSentError, ApiError, OSError, ValueError) as exc:
                self.stderr.write(str(exc))
                faults += 1
            else:
                self._say(copied)
        self.stderr.write(
            f"{plural(found, 'file')} in {folder}" + (f", {faults} could not be copied" if faults else "")
        )
        if task and task.status != TaskStatus.DONE:
            self.stderr.write(_state(task, there))
        if faults:
            raise SystemExit(1)

    def _say(self, copied: Path) -> None:
        """Where a file is; nobody need read it to the end: files are copied all the same."""
        if self._is_read:
            try:
                self.stdout.write(str(copied))
                self.stdout.flush()
            except BrokenPipeError:
                self._is_read = False
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes it once more at its end


def _state(task: Task, there: int) -> str:
    """What is there of a task and how far it has come."""
    rows = Dataset.objects.filter(task=task, type__in=INPUT_TYPES, master_id=None)
    sums = rows.aggregate(all=Sum("files"), finished=Sum("files_finished"), failed=Sum("files_failed"))
    total, finished, failed = (sums[name] or 0 for name in ("all", "finished", "failed"))
    work = f", with {finished} of {plural(total, 'input')} processed and {failed} given up" if total else ""
    made = f"{plural(there, 'file')} of what it makes {'is' if there == 1 else 'are'} there"
    said = f" ({task.error_dialog.rstrip('.')})" if task.error_dialog else ""
    return f"task {task.id} is {task.status}{said}{work}; {made}"


def _copied(file: File, folder: Path, workflow: str) -> Path:
    """Files of a workflow have their base names: behind its name stand the number of a task and that."""
    own = file.lfn.removeprefix(f"{workflow}.").partition(".")[2] if workflow and file.type == "output" else file.lfn
    row = {"id": file.id, "lfn": own, "size": file.size, "checksum": file.checksum}
    return save(row, folder, lambda have: fetching.open_made(file).part(have))
