"""Verifies what tasks made: counts, and each file's size and checksum as read back from the disk."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tasks_app.ddm.local_files import adler32, path_of
from tasks_app.labs.demo.demo_plan import DemoTask
from tasks_app.models import CatalogueFile, Job, Task


@dataclass(frozen=True, slots=True)
class Result:
    task_id: int
    name: str
    status: str
    jobs: int
    outputs: int
    events: int
    bytes: int
    faults: list[str]


def verify(task_id: int, demo: DemoTask) -> Result:
    """Compare what a final task has with what it must have. Every fault is a sentence."""
    task = Task.objects.get(pk=task_id)
    files = list(CatalogueFile.objects.filter(dataset__name=demo.output).order_by("lfn"))
    faults = [fault for file in files for fault in _check_file(file)]
    expect = demo.expect
    if task.status != expect.status:
        faults.append(f"the task is {task.status}, not {expect.status}: {task.error_dialog}")
    if expect.outputs is not None and len(files) != expect.outputs:
        faults.append(f"there are {len(files)} output files, not {expect.outputs}")
    events = sum(file.events or 0 for file in files)
    if expect.events is not None and events != expect.events:
        faults.append(f"the outputs hold {events} events, not {expect.events}")
    if expect.error_says and expect.error_says not in (task.error_dialog or ""):
        faults.append(f"the error summary does not name {expect.error_says}: {task.error_dialog}")
    if not files:
        faults.append("there is no output")
    elif expect.report and not faults:
        faults += expect.report([_read(file) for file in files])
    jobs = Job.objects.filter(task_id=task_id).count()
    return Result(task_id, demo.name, task.status, jobs, len(files), events, sum(f.size for f in files), faults)


def _check_file(file: CatalogueFile) -> list[str]:
    path = path_of(file.url)
    if not path.is_file():
        return [f"{file.lfn} is not on the disk"]
    if path.stat().st_size != file.size:
        return [f"{file.lfn} has {path.stat().st_size} bytes, the catalogue says {file.size}"]
    found = adler32(path)
    return [] if found == file.adler32 else [f"{file.lfn} has the checksum {found}, the catalogue says {file.adler32}"]


def _read(file: CatalogueFile) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path_of(file.url).read_text())
    return found
