"""Validation of outputs: what the catalogue has of a task against what its books say, and inputs processed twice.

`check` only reads. `mend` takes away what should not be there: files that no successful job has made, and the outputs of
jobs whose inputs all count for other jobs. What is missing or differs stays for people: `recovery` makes it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from django.db import transaction

from jedisite.database.sql import hot_cursor, numbers, texts
from jedisite.vocabulary.words import plural, some
from tasks_app.ddm import data_management, maker_of
from tasks_app.ddm.base import FileInfo, UnknownDatasetError
from tasks_app.domain.job_file_states import JobFileStatus
from tasks_app.domain.range_jobs import OF_SOME_EVENTS
from tasks_app.lifecycle import file_recovery
from tasks_app.models import Dataset, Task
from tasks_app.outcomes.lost_outputs import LostOutput, lose_outputs
from tasks_app.outcomes.missing import missing_outputs

PAGE = 50_000
MOST_NAMED = 1000


@dataclass(slots=True)
class Findings:
    """What is wrong with the outputs of a task; names by dataset.

    zombies    in the catalogue, and no successful job made them
    missing    made by a job, and not in the catalogue
    differing  with another size or checksum than the job reported
    gone       datasets that the catalogue does not know
    lost       outputs in the catalogue that are gone from the storages of this machine; looked for only when that is asked
    void_jobs  finished jobs whose inputs all count for other jobs, so that their outputs are there twice
    compared   how many outputs and logs of finished jobs were compared
    """

    task_id: int
    zombies: dict[str, list[str]] = field(default_factory=dict)
    missing: dict[str, list[str]] = field(default_factory=dict)
    differing: dict[str, list[str]] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    void_jobs: list[int] = field(default_factory=list)
    compared: int = 0

    @property
    def can_be_mended(self) -> bool:
        return bool(self.zombies or self.void_jobs)

    @property
    def needs_people(self) -> bool:
        return bool(self.missing or self.differing)

    @property
    def is_clean(self) -> bool:
        return not (self.can_be_mended or self.needs_people or self.gone or self.lost)

    def sentences(self) -> list[str]:
        lines = []
        for one, many, found in (
            ("that no job made", "that no job made", self.zombies),
            ("is missing in the catalogue", "are missing in the catalogue", self.missing),
            (
                "has another size or checksum than its job reported",
                "have another size or checksum than their jobs reported",
                self.differing,
            ),
        ):
            for dataset, names in sorted(found.items()):
                words = one if len(names) == 1 else many
                lines.append(f"{plural(len(names), 'file')} of {dataset} {words}: {some(names, 3)}")
        if self.lost:
            gone = "output is gone", "outputs are gone"
            lines.append(f"{plural(len(self.lost), *gone)} from the storages of this machine: {some(self.lost, 3)}")
        if self.void_jobs:
            jobs = some(map(str, self.void_jobs), 3)
            lines.append(
                f"{plural(len(self.void_jobs), 'job')} processed inputs that other jobs have processed: {jobs}"
            )
        lines += [f"the dataset {name} is not in the catalogue" for name in self.gone]
        return lines


def check(task_id: int, *, storages: bool = False) -> Findings:
    """Compare the outputs and logs of a task with the catalogue, and outputs with the `storages` of this machine, too. Nothing
    is changed."""
    found = Findings(task_id)
    datasets = Dataset.objects.filter(task_id=task_id, type__in=["output", "log"]).order_by("id")
    with transaction.atomic(), hot_cursor() as cursor:
        for dataset in datasets:
            _compare(cursor, dataset, found)
        found.void_jobs = _void_jobs(cursor, task_id)
    if storages:
        known = {lfn for lfns in found.missing.values() for lfn in lfns}
        found.lost = [lfn for lfn in missing_outputs(task_id, MOST_NAMED) if lfn not in known]
    return found


def mend(found: Findings) -> int:
    """Take away what no job made and what is there twice. Returns how many files."""
    removed, maker = 0, maker_of(Task.objects.only("user").get(pk=found.task_id))
    with transaction.atomic(), hot_cursor() as cursor:
        if found.void_jobs:
            removed += _void(cursor, found.task_id, found.void_jobs)
        for dataset, names in sorted(found.zombies.items()):
            removed += data_management().remove(dataset, names, by=maker)
    return removed


# Files of the dataset that some task's job has made: several tasks may write to one dataset.
_MADE = """
SELECT c.lfn, c.fsize, c.checksum FROM jedi_datasets d
  JOIN jedi_dataset_contents c ON c.jeditaskid = d.jeditaskid AND c.datasetid = d.datasetid AND c.status = 'finished'
 WHERE d.datasetname = %s AND d.type IN ('output', 'log', 'lib', 'pp_log') AND c.lfn = ANY(%s::text[])
"""


def _compare(cursor: psycopg.Cursor[Any], dataset: Dataset, found: Findings) -> None:
    name = dataset.name
    try:
        info = data_management().describe(name)
    except UnknownDatasetError:
        if dataset.files_finished:
            found.gone.append(name)
        return
    seen: set[str] = set()
    for page in data_management().list_files(name, PAGE, all_attempts=True):
        cursor.execute(_MADE, [name, texts(f.lfn for f in page)])
        made = {lfn: (size, checksum) for lfn, size, checksum in cursor.fetchall()}
        seen.update(made)
        # In a dataset that a user has registered, what no job made is the user's own.
        _note(found.zombies, name, [f.lfn for f in page if f.lfn not in made] if info.made_by_task else [])
        _note(found.differing, name, [f.lfn for f in page if f.lfn in made and _differs(f, *made[f.lfn])])
    if dataset.files_finished > 0:
        cursor.execute(
            """SELECT lfn FROM jedi_dataset_contents WHERE jeditaskid = %s AND datasetid = %s AND status = 'finished'
                ORDER BY fileid""",
            [dataset.task_id, dataset.id],
        )
        in_books = [lfn for (lfn,) in cursor]
        found.compared += len(in_books)
        _note(found.missing, name, [lfn for lfn in in_books if lfn not in seen])


def _differs(file: FileInfo, size: int | None, checksum: str | None) -> bool:
    # Leading zeros of a checksum may be left out.
    known = (checksum or "").removeprefix("ad:").lstrip("0").lower()
    listed = file.checksum.removeprefix("ad:").lstrip("0").lower()
    return file.size != size or known != listed


def _note(place: dict[str, list[str]], dataset: str, names: Sequence[str]) -> None:
    if names:
        place[dataset] = [*place.get(dataset, []), *names][:MOST_NAMED]


def _void_jobs(cursor: psycopg.Cursor[Any], task_id: int) -> list[int]:
    cursor.execute(
        f"""SELECT f.pandaid FROM (SELECT pandaid FROM jobs WHERE jeditaskid = %(task)s AND jobstatus = 'finished'
                                      AND jobsubstatus IS DISTINCT FROM '{OF_SOME_EVENTS}'
                                   UNION ALL
                                  SELECT pandaid FROM jobs_archive WHERE jeditaskid = %(task)s AND jobstatus = 'finished'
                                      AND jobsubstatus IS DISTINCT FROM '{OF_SOME_EVENTS}') j
             JOIN job_files f ON f.pandaid = j.pandaid AND f.type IN ('input', 'pseudo_input')
              AND f.status IS DISTINCT FROM '{JobFileStatus.AGAIN}'
             JOIN jedi_dataset_contents c ON c.jeditaskid = %(task)s AND c.datasetid = f.datasetid AND c.fileid = f.fileid
              AND c.keeptrack = 1
            GROUP BY 1 HAVING NOT bool_or(c.pandaid = f.pandaid) AND bool_and(c.status = 'finished') ORDER BY 1""",  # noqa: S608
        {"task": task_id},
    )
    return [job for (job,) in cursor.fetchall()]


def _void(cursor: psycopg.Cursor[Any], task_id: int, jobs: Sequence[int]) -> int:
    cursor.execute(
        """SELECT c.fileid, c.datasetid, d.datasetname, c.lfn, c.pandaid
             FROM jedi_dataset_contents c JOIN jedi_datasets d ON d.datasetid = c.datasetid
            WHERE c.jeditaskid = %s AND c.pandaid = ANY(%s::bigint[]) AND c.type = 'output' AND c.status = 'finished'
            ORDER BY c.fileid""",
        [task_id, numbers(jobs)],
    )
    outputs = [LostOutput._make(row) for row in cursor.fetchall()]
    lose_outputs(cursor, task_id, outputs)
    file_recovery.take_inputs_from(cursor, jobs)
    return len(outputs)
