"""What may make a job fit into less scratch space: fewer files where it has several, less of what the task states. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil, floor
from typing import Any, Final

from brokerage_app.formulas.disk import MB, Atom, output_mb, size_of
from brokerage_app.vocabulary.needs import TaskNeeds
from jedisite.refusals import Fixer
from jedisite.vocabulary.words import plural

UNLESS: Final = "if its jobs need no more"


@dataclass(frozen=True, slots=True)
class Less:
    """One change: what to do, for whom, and what the job needs then. Of one kind the least change that helps is enough."""

    what: str
    who: Fixer
    kind: str
    needs: dict[str, Any] = field(default_factory=dict)


def less_scratch(needs: TaskNeeds, missing_mb: float) -> Iterator[Less]:
    """Changes that may save this many MB, the smallest of each kind first. The caller tests whether they help."""
    yield from _fewer_files(needs, missing_mb)
    work = size_of(needs.work_disk, needs.work_disk_unit, default="MB").bytes / MB
    if work >= missing_mb and (left := floor(needs.work_disk * (1 - missing_mb / work))) < needs.work_disk:
        saved = {"work_disk": left, "disk_mb": needs.disk_mb - floor(work * (1 - left / needs.work_disk))}
        what = f"Lower the workDiskCount of the task from {needs.work_disk} to {left}, {UNLESS}"
        yield Less(what, "user", "work", saved)
    size = size_of(needs.out_disk, needs.out_disk_unit)
    output = output_mb(size, Atom(needs.atom_mb, needs.effective_mb, needs.atom_events))
    if output >= missing_mb and (left := floor(needs.out_disk * (1 - missing_mb / output))) < needs.out_disk:
        saved = {"out_disk": left, "disk_mb": needs.disk_mb - floor(size.bytes / MB * (1 - left / needs.out_disk))}
        what = f"Lower the outDiskCount of the task from {needs.out_disk} to {left}, {UNLESS}"
        yield Less(what, "user", "output", saved)


def _fewer_files(needs: TaskNeeds, missing_mb: float) -> Iterator[Less]:
    """Jobs of fewer files, or of the events of fewer files: a file is not cut, so that of one file nothing is saved."""
    files = needs.files_a_job or (round(needs.atom_mb / needs.file_mb) if needs.file_mb > 0 else 1)
    if files <= 1 or needs.atom_mb <= 0 or not (needs.files_a_job or needs.events_a_job):
        return
    each = needs.atom_mb / files
    for left in dict.fromkeys((max(1, files - ceil(missing_mb / each)), 1)):
        part = left / files if needs.files_a_job else min(1.0, left * each / needs.effective_mb)
        events = floor(needs.events_a_job * part)
        if needs.files_a_job:
            what = f"Make jobs of {plural(left, 'file')} (nFilesPerJob; now {needs.files_a_job})"
        else:
            now = f"(nEventsPerJob; now {needs.events_a_job})"
            what = (
                f"Kill the task and submit it again, under another name and with {plural(events, 'event')} a job {now}"
            )
        yield Less(
            what,
            "user",
            "files",
            {
                "atom_mb": left * each,
                "effective_mb": max(needs.effective_mb * part, 1.0),
                "atom_events": ceil(needs.atom_events * part),
                "cpu_hs06s": needs.cpu_hs06s * part,
                "least_cpu_hs06s": needs.least_cpu_hs06s * part,
            },
        )
