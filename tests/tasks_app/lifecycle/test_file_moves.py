"""The doors for the states of files, asked for files in every state: what the table of moves allows happens, and nothing
else happens at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, NamedTuple

import pytest

from jedisite.database.sql import hot_cursor
from tasks_app.domain.states import FILE_MOVES, FileStatus
from tasks_app.lifecycle import file_availability, file_ends, file_moves, file_recovery, file_uses
from tasks_app.models import Dataset, File, JobFile, Task

F = FileStatus
JOB = 77
IN, OUT, UNMERGED = "input", "output", "trn_output"
TABLES = {IN: "input", OUT: "output", UNMERGED: "output"}


class Scene(NamedTuple):
    """A dataset with a file in every state, each of them of one job."""

    task: int
    dataset: int
    files: list[int]

    def run(self, statement: str, **values: Any) -> None:
        given = {"task": self.task, "dataset": self.dataset, "first": self.files[0], "last": self.files[-1]}
        with hot_cursor() as cursor:
            cursor.execute(statement, {**given, "files": self.files, "jobs": [JOB] * len(self.files), **values})

    def ask(self, door: Callable[..., object], *arguments: object, **more: Any) -> None:
        with hot_cursor() as cursor:
            door(cursor, self.task, *arguments, **more)


def booked(won: bool, *, partly: bool = False) -> Callable[[Scene], None]:
    flags = {"ids": [JOB], "won": [won], "failed": [not won], "spared": [False], "most_spared": 3}
    return lambda scene: scene.run(file_ends.BOOK_INPUTS, **flags, partial=scene.files if partly else [])


def ended(statement: str, status: str, *, stored: bool) -> Callable[[Scene], None]:
    def end(scene: Scene) -> None:
        files = scene.files if stored else []
        said = {"sizes": [1] * len(files), "events": [1] * len(files)}
        texts = {name: ["x"] * len(files) for name in ("sums", "guids", "surls")}
        scene.run(statement, **said, **texts, files=files, ids=[JOB], statuses=[status], attempts=3)

    return end


def lost(scene: Scene) -> None:
    scene.ask(file_availability.lose_where, scene.dataset, "TRUE", {})


MERGES_END = {"ids": [JOB], "merged": "merged", "not_merged": "notmerged"}
DOORS: dict[str, tuple[Callable[[Scene], object], Mapping[F, F], tuple[str, ...]]] = {
    "opened again": (
        lambda s: file_moves.open_again(s.task, [s.dataset]),
        {F.PICKED: F.READY, F.RUNNING: F.READY, F.LOST: F.READY, F.MISSING: F.READY},
        (IN,),
    ),
    "staged": (lambda s: file_moves.note_staged(s.task, [s.dataset], None), {F.STAGING: F.PENDING}, (IN,)),
    "released from staging": (lambda s: file_moves.release_staging(s.task), {F.STAGING: F.PENDING}, (IN,)),
    "no longer waited for": (
        lambda s: file_moves.stop_waiting(s.task),
        {F.STAGING: F.READY, F.PENDING: F.READY},
        (IN,),
    ),
    "given up": (lambda s: file_moves.give_up(s.task), {F.STAGING: F.READY, F.PENDING: F.READY}, (IN,)),
    "released": (lambda s: s.ask(file_availability.release, s.dataset, None), {F.PENDING: F.READY}, (IN,)),
    "the first released": (lambda s: s.ask(file_availability.release, s.dataset, 99), {F.PENDING: F.READY}, (IN,)),
    "lost": (lost, {F.STAGING: F.LOST, F.PENDING: F.LOST, F.READY: F.LOST}, (IN,)),
    "there again": (
        lambda s: s.ask(file_availability.find_again, s.dataset, [*F], status="pending"),
        {F.LOST: F.PENDING, F.MISSING: F.PENDING},
        (IN,),
    ),
    "ready again": (
        lambda s: s.ask(file_availability.find_again, s.dataset, [*F], status="ready"),
        {F.LOST: F.READY, F.MISSING: F.READY},
        (IN,),
    ),
    "used": (lambda s: s.run(file_uses.USE_TRACKED, name="lab.t.in"), {F.READY: F.RUNNING}, (IN, UNMERGED)),
    "used as seeds": (lambda s: s.run(file_uses.USE_SEEDS), {F.READY: F.RUNNING}, (IN,)),
    "processed": (booked(True), {F.RUNNING: F.FINISHED}, (IN, UNMERGED)),
    "processed in part": (booked(True, partly=True), {F.RUNNING: F.PARTIAL}, (IN,)),
    "not processed": (booked(False), {F.RUNNING: F.READY}, (IN, UNMERGED)),
    "made": (ended(file_ends.BOOK_OUTPUTS, "finished", stored=True), {F.DEFINED: F.FINISHED}, (OUT, UNMERGED)),
    "not made": (
        ended(file_ends.BOOK_OUTPUTS, "failed", stored=False),
        {F.DEFINED: F.FAILED, F.READY: F.FAILED},
        (OUT, UNMERGED),
    ),
    "not made by a job that was ended": (
        ended(file_ends.BOOK_OUTPUTS, "closed", stored=False),
        {F.DEFINED: F.CANCELLED, F.READY: F.CANCELLED},
        (OUT, UNMERGED),
    ),
    "to be merged": (ended(file_ends.HOLD_OUTPUTS, "", stored=True), {F.DEFINED: F.READY}, (UNMERGED,)),
    "not merged": (lambda s: s.run(file_ends.CONCLUDE_MERGES, **MERGES_END), {F.READY: F.NOTMERGED}, (UNMERGED,)),
    "outputs lost": (lambda s: s.ask(file_recovery.lose, s.files, [JOB]), {F.FINISHED: F.LOST}, (OUT,)),
    "partial again": (lambda s: s.ask(file_recovery.partial_again, s.files), {F.READY: F.PARTIAL}, (IN,)),
    "processed again": (
        lambda s: s.ask(file_recovery.process_again, s.files),
        {F.FINISHED: F.READY, F.PARTIAL: F.READY},
        (IN,),
    ),
}
CASES = [(name, kind) for name, (_, _, kinds) in DOORS.items() for kind in kinds]


@pytest.mark.django_db
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_files_move_as_the_table_allows(
    make_task: Callable[..., Task], make_dataset: Callable[..., Dataset], name: str, kind: str
) -> None:
    door, moves, _ = DOORS[name]
    assert all(new in FILE_MOVES[TABLES[kind]][old] for old, new in moves.items())
    task = make_task()
    dataset = make_dataset(task, type=kind, files=len(F), files_missing=len(F))
    files = []
    for status in F:
        file = File.objects.create(
            task_id=task.id,
            dataset_id=dataset.id,
            type=kind,
            lfn=status,
            status=status,
            keep_track=1,
            max_attempt=1 if name in ("not merged", "partial again") else 3,
            attempt=1,
            job_id=JOB,
            boundary_id=JOB + 1,
        )
        files.append(file.id)
        # To a merge job, what others made is an input.
        read = IN if name == "not merged" else kind
        JobFile.objects.create(job_id=JOB, task_id=task.id, dataset_id=dataset.id, file_id=file.id, type=read)
    door(Scene(task.id, dataset.id, files))
    assert dict(File.objects.values_list("lfn", "status")) == {old: moves.get(old, old) for old in F}


@pytest.mark.django_db
@pytest.mark.parametrize("table", FILE_MOVES)
def test_the_condition_of_the_doors_is_the_table_for_each_pair_of_states(table: str) -> None:
    met = set()
    with hot_cursor() as cursor:
        for new in F:
            condition = file_moves.before([table], new, row="f.")
            cursor.execute(f"SELECT status FROM unnest(%s::text[]) f (status) WHERE {condition}", [list(F)])  # noqa: S608
            met |= {(F(old), new) for (old,) in cursor}
    moves = FILE_MOVES[table]
    assert met == {(old, new) for old, new in product(F, F) if new in moves.get(old, ())}


def test_a_condition_for_several_tables_or_states_asks_all_of_them() -> None:
    assert file_moves.before(file_moves.EITHER, F.LOST) == "false"
    assert file_moves.before(file_moves.EITHER, F.FINISHED, F.READY, row="c.") == "c.status = 'running'"
    assert file_moves.before(file_moves.INPUT, F.READY, among=[F.RUNNING, F.READY]) == "status = 'running'"
