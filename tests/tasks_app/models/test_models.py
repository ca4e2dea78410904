"""The tables mirror those of the JEDI documents, and every usage that the documents name has its method and its index."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tasks_app.domain.states import DatasetStatus, FileStatus, TaskStatus
from tasks_app.lists.filtersets import TaskFilter
from tasks_app.models import Command, Dataset, File, Task
from tests.plans import assert_uses_an_index, fill_table, indexes, plan_of, scanned

SEED: dict[str, dict[str, dict[str, Any]]] = json.loads(
    (Path(__file__).parents[2] / "data" / "jedi_tables.json").read_text()
)
COLUMNS = [(table, column) for table, columns in SEED.items() for column in columns]
DIGITS = {"smallint": 4, "integer": 9, "bigint": 18}
"""Decimal digits that every number of a type holds."""
pytestmark = pytest.mark.django_db


@pytest.fixture
def ours(db: None) -> dict[tuple[str, str], dict[str, Any]]:
    """(table, column) -> what information_schema says of it."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT table_name, column_name, data_type, is_nullable, character_maximum_length
                 FROM information_schema.columns WHERE table_name = ANY(%s)""",
            [list(SEED)],
        )
        return {(t, c): {"type": k, "nullable": n == "YES", "length": size} for t, c, k, n, size in cursor.fetchall()}


def wide_enough(theirs: str, mine: dict[str, Any]) -> bool:
    """Whether each value of a type of the seed can be stored in a column of ours."""
    name, size = re.fullmatch(r"(\w+?)(?:\((\d+)\))?", theirs).groups()  # type: ignore[union-attr]
    if name == "number":
        return DIGITS.get(mine["type"], 0) >= int(size)
    if name in ("varchar2", "char"):
        return mine["type"] == "text" or (mine["length"] or 0) >= int(size)
    if name == "date":
        return str(mine["type"]).startswith("timestamp")
    return mine["type"] in ("text", "jsonb")  # a CLOB


def test_no_table_or_column_of_the_documents_is_missing(ours):
    assert [f"{t}.{c}" for t, c in COLUMNS if (t, c) not in ours] == []
    assert len(SEED) == 10 and len(COLUMNS) == 186


def test_two_columns_are_spelt_as_the_documents_spell_them():
    assert "taskid" in SEED["jedi_jobparams_template"]
    assert "statecehcktime" in SEED["jedi_datasets"]


def test_columns_hold_all_that_the_documents_let_them_hold(ours):
    narrow = {f"{t}.{c}" for t, c in COLUMNS if not wide_enough(SEED[t][c]["type"], ours[t, c])}
    assert narrow == set()


def test_what_must_be_set_must_be_set(ours):
    nullable = {f"{t}.{c}" for t, c in COLUMNS if SEED[t][c].get("not_null") and ours[t, c]["nullable"]}
    assert nullable == set()


def test_the_order_of_work_queues_is_unique():
    with connection.cursor() as cursor:
        constraints = connection.introspection.get_constraints(cursor, "jedi_work_queue")
    assert any(c["unique"] and c["columns"] == ["queue_order"] for c in constraints.values())


TASK_STATES = """registered defined assigning ready pending scouting scouted running prepared done failed finished aborting
    aborted finishing topreprocess preprocessing tobroken broken toretry toincexec rerefine paused throttled exhausted passed"""
DATASET_STATES = "defined toupdate pending broken ready done running prepared"
FILE_STATES = "ready missing lost broken picked running finished failed partial defined prepared merging"


@pytest.mark.parametrize(
    ("states", "known"),
    [(TASK_STATES, TaskStatus), (DATASET_STATES, DatasetStatus), (FILE_STATES, FileStatus)],
    ids=["task", "dataset", "file"],
)
def test_every_state_of_the_documents_is_known(states, known):
    assert set(states.split()) <= {s.value for s in known}


# Usages of the tables: the right rows


@pytest.fixture
def make_file(db: None) -> Callable[..., File]:
    def make(**changes: Any) -> File:
        values = {"task_id": 1, "dataset_id": 1, "lfn": "f", "type": "input", "status": "ready", "max_attempt": 3}
        return File.objects.create(**{**values, **changes})

    return make


def ids(rows: QuerySet[Any]) -> list[int]:
    return [row.id for row in rows]


def test_tasks_to_be_amended_are_those_with_open_commands(make_task):
    first, second, third = make_task(), make_task(), make_task()
    for task, status in ((second, "waiting"), (first, "working"), (third, "done"), (third, "refused")):
        Command.objects.create(task=task, name="kill", owner="ada", status=status)
    assert [c.task_id for c in Command.objects.open()] == [second.id, first.id]


def test_datasets_of_a_task_and_those_with_work_left(make_task, make_dataset):
    task, other = make_task(), make_task()
    work = make_dataset(task, files_to_be_used=5, files_used=4)
    used_up = make_dataset(task, files_to_be_used=5, files_used=5)
    output = make_dataset(task, type="output", files_to_be_used=5)
    pending = make_dataset(task, status="pending", files_to_be_used=5)
    make_dataset(other, files_to_be_used=5)
    assert ids(Dataset.objects.of_task(task.id)) == [work.id, used_up.id, output.id, pending.id]
    assert ids(Dataset.objects.with_work(task.id)) == [work.id]
    assert ids(Dataset.objects.with_work(task.id, types=["output"])) == [output.id]
    assert ids(Dataset.objects.with_work(task.id, status="pending")) == [pending.id]


def test_tasks_that_use_or_make_a_dataset_or_give_to_a_container(make_task, make_dataset):
    old, new = make_task(), make_task()
    for task in (old, new):
        make_dataset(task, name="d", container_name="c/")
    make_dataset(new, name="d", type="output", container_name="c/")
    make_dataset(new, name="e", container_name="x/")
    assert [d.task_id for d in Dataset.objects.used_or_made_by_tasks("d")] == [new.id, new.id, old.id]
    assert sorted(d.task_id for d in Dataset.objects.of_container("c/").filter(type="input")) == [old.id, new.id]
    assert [d.name for d in Dataset.objects.of_container("e", "x/")] == ["e"]


def test_the_time_of_the_last_look_has_both_names(make_task, make_dataset):
    made = make_dataset(make_task(), state_check_time=timezone.now())
    made.refresh_from_db()
    assert made.also_state_check_time == made.state_check_time


def test_files_of_a_dataset(make_file):
    ready = make_file(attempt=2)
    exhausted = make_file(attempt=3)
    running = make_file(status="running")
    make_file(dataset_id=2)
    log = make_file(type="log")
    make_file(task_id=2)
    assert ids(File.objects.of_dataset(1, 1, "input")) == [ready.id, exhausted.id, running.id]
    assert ids(File.objects.of_dataset(1, 1, "input", "running")) == [running.id]
    assert set(ids(File.objects.all_of_dataset(1, 1))) == {ready.id, exhausted.id, running.id, log.id}


# Usages of the tables: an index answers

NOW = timezone.now()
PLANS: dict[str, Callable[[], QuerySet[Any]]] = {
    "delayed tasks": lambda: TaskFilter(
        {"status": "ready", "type": "t1", "created_before": (NOW - timedelta(hours=1)).isoformat()}, Task.objects.all()
    ).qs.order_by("creation_date"),
    "commands": lambda: Command.objects.open(),
    "datasets of a task": lambda: Dataset.objects.of_task(7),
    "datasets with work": lambda: Dataset.objects.with_work(7),
    "uses of a dataset": lambda: Dataset.objects.used_or_made_by_tasks("d7"),
    "container": lambda: Dataset.objects.of_container("c7"),
    "containers": lambda: Dataset.objects.of_container("c7", "c8"),
    "files of a dataset": lambda: File.objects.of_dataset(10_000_007, 7, "input", "ready"),
    "all files of a dataset": lambda: File.objects.all_of_dataset(7, 90_000_007),
}
UPDATES: dict[str, tuple[Callable[[], QuerySet[Any]], dict[str, Any]]] = {
    "a dataset": (lambda: Dataset.objects.filter(id=7), {"status": "done"}),
    "datasets of a task": (lambda: Dataset.objects.of_task(7), {"status": "done"}),
    "a file": (lambda: File.objects.filter(id=7), {"status": "done"}),
    "files of a dataset": (lambda: File.objects.all_of_dataset(7, 10_000_007), {"status": "done"}),
}


def fill_tasks() -> None:
    """Few tasks are open, few of them locked: as it is after some months."""
    fill_table(
        "jedi_tasks",
        5000,
        status="(ARRAY['ready', 'running', 'done', 'finished', 'failed', 'broken', 'aborted', 'done'])[1 + i % 8]",
        username="'u' || i % 400",
        vo="'v' || i % 3",
        tasktype="'t' || i % 7",
        workinggroup="'g' || i % 5",
        processingtype="'p' || i % 5",
        currentpriority="i % 1000",
        creationdate="now() - i * interval '1 minute'",
        lockedby="CASE WHEN i % 100 = 0 THEN 'me' END",
        lockedtime="CASE WHEN i % 100 = 0 THEN now() - i * interval '1 minute' END",
    )


def fill_datasets() -> None:
    fill_table(
        "jedi_datasets",
        5000,
        jeditaskid="1 + i / 10",
        datasetname="'d' || i / 4",
        containername="'c' || i / 8",
        type="'input'",
        status="'ready'",
        nfilestobeused="10",
        statecehcktime="now() - i * interval '1 minute'",
        statecheckexpiration="CASE WHEN i % 100 = 0 THEN now() END",
        lockedby="CASE WHEN i % 100 = 0 THEN 'me' END",
        lockedtime="CASE WHEN i % 100 = 0 THEN now() - i * interval '1 minute' END",
    )


def fill_files() -> None:
    """Files in each partition, the one for unforeseen task ids too."""
    fill_table(
        "jedi_dataset_contents",
        9000,
        jeditaskid="(ARRAY[10000000, 11000000, 90000000])[1 + i % 3] + i / 60",
        datasetid="i / 30",
        lfn="'f' || i",
        type="'input'",
        status="'ready'",
        maxattempt="3",
    )


@pytest.fixture
def filled(db: None) -> None:
    fill_tasks()
    fill_datasets()
    fill_files()
    fill_table("task_commands", 5000, comm_task="i", comm_status="CASE WHEN i % 500 = 0 THEN 'waiting' ELSE 'done' END")


def test_every_usage_goes_through_an_index(filled):
    for name, usage in PLANS.items():
        try:
            assert_uses_an_index(usage())
        except AssertionError as exc:
            raise AssertionError(f"{name}: {exc}") from exc


def test_every_update_goes_through_an_index(filled):
    for name, (usage, values) in UPDATES.items():
        with CaptureQueriesContext(connection) as context:
            usage().update(**values)
        plan = plan_of(context.captured_queries[0]["sql"])
        assert scanned(plan) == [] and indexes(plan), (name, plan)
