"""Whole tasks of events with our pilot, as a process, and real payloads: one of them is killed on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import transaction

from brokerage_app.models import Queue, StorageEndpoint
from events_app.models import Event
from events_app.rules.event_states import EventStatus
from jedisite.database.sql import hot_cursor
from tasks_app.dispatch import queue_storages
from tasks_app.lifecycle import task_moves
from tasks_app.models import Dataset, File, Job, JobFile
from tasks_app.outcomes.job_outcome import Outcome
from tasks_app.outcomes.outcomes import book
from tasks_app.outcomes.recovery import recover
from tests.flow.balance import assert_books_balance
from tests.flow.driving import parameters, settle, status, submit, task, template
from tests.flow.test_commands import command
from tests.installation import wait_for

pytestmark = pytest.mark.django_db(transaction=True)
Start = Callable[[], subprocess.Popen[bytes]]
EVENTS = 30
LINES = b"".join(b"%d\n" % number for number in range(1, EVENTS + 1))


@pytest.fixture
def inputs(tmp_path: Path, transactional_db: None) -> Iterator[Path]:
    """A queue with a storage, and a dataset with a file of 30 lines."""
    for name in ("storage", "in"):
        (tmp_path / name).mkdir()
    (tmp_path / "in" / "lab.lines.txt").write_bytes(LINES)
    StorageEndpoint.objects.create(name="SE", site_name="SITE_A", path=str(tmp_path / "storage"), number=12)
    data = {"zip_time_gap": 0.2}
    Queue.objects.create(name="SITE_A", site_name="SITE_A", storage_id="SE", data=data, job_seed="all", core_count=1)
    queue_storages.forget()
    call_command("register_dataset", "lab.in", str(tmp_path / "in"), events=EVENTS)
    yield tmp_path
    queue_storages.forget()


def submitted(command: str, *, dataset: str = "lab.in", **more: Any) -> int:
    """A task that runs a command for each range of the files of a dataset; its jobs are made."""
    quoted = urllib.parse.quote(command)
    items = [
        {
            "type": "constant",
            "value": f"""-i "${{IN/T}}" -p "{quoted}" -o "{{'out.txt': '${{OUTPUT0}}'}}" """,
        },
        template("input", "${IN}", dataset, hidden=True),
        template("output", "lab.t.${SN}.txt", "lab.t.txt", hidden=True),
    ]
    given = {"nFilesPerJob": 1, "nEventsPerInputFile": EVENTS, **more}
    made = submit(parameters("lab.t", **given) | {"jobParameters": items})
    settle()
    assert Job.objects.filter(task_id=made, status="activated").exists(), task(made).error_dialog
    assert "_EVENT" not in (task_moves.warnings_of(made) or ""), "its jobs have these names"
    return made


def lost(job: int, task_id: int) -> None:
    """Nothing is heard of a job any more."""
    with transaction.atomic(), hot_cursor() as cursor:
        book(cursor, [Outcome(job, task_id, "failed", "jobdispatcher", 100, "no heartbeat for 2 hours")])
    settle()


def finished() -> int:
    return sum(
        1 + last - first
        for first, last in Event.objects.filter(status=EventStatus.FINISHED).values_list("min_event", "max_event")
    )


def results(task_id: int) -> list[bytes]:
    """What lies in the storage of the outputs that the books have as finished."""
    rows = File.objects.filter(task_id=task_id, type="output", status="finished").order_by("lfn")
    surls = [JobFile.objects.get(file_id=row.id, type="output").surl or "" for row in rows]
    return [Path(urllib.parse.unquote(surl.removeprefix("file://localhost"))).read_bytes() for surl in surls]


def test_outputs_of_a_fine_grained_task_are_one_file_for_each_input_although_a_pilot_was_killed(
    inputs: Path, start: Start
) -> None:
    go = inputs / "go"
    made = submitted(
        f"sed -n ${{FIRST_EVENT}}p %IN > out.txt; [ $FIRST_EVENT -le 10 ] || [ -e {go} ] || sleep 1000",
        fineGrainedProc=True,
    )
    killed = start()
    wait_for(lambda: finished() == 10, "the report of the first ten events")
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait(30)
    first = Job.objects.get(task_id=made)
    lost(first.id, made)
    first.refresh_from_db()
    assert (first.event_service, first.status, first.sub_status) == (6, "finished", "fg_partial")
    go.touch()
    assert start().wait(120) == 0
    settle()
    second = Job.objects.get(task_id=made, event_service=6, id__gt=first.id)
    assert (second.status, second.sub_status) == ("finished", "fg_done")
    assert File.objects.get(task_id=made, type="input").status == "running", "until it is merged"
    assert start().wait(120) == 0
    settle()
    assert status(made) == "done", task(made).error_dialog
    merge = Job.objects.get(task_id=made, event_service=2)
    assert (merge.status, merge.transformation.rpartition("/")[2]) == ("finished", "merge_events")
    assert results(made) == [LINES]
    assert {row.status for row in Event.objects.filter(task_id=made)} <= {EventStatus.MERGED, EventStatus.CANCELLED}
    outputs = Dataset.objects.get(task_id=made, type="output")
    assert (outputs.files, outputs.files_finished) == (1, 1)
    assert_books_balance()


def test_what_was_given_up_of_a_file_is_told_and_a_retry_processes_that_alone(inputs: Path, start: Start) -> None:
    go = inputs / "go"
    made = submitted(
        f"[ $FIRST_EVENT -ne 11 ] || [ -e {go} ] || exit 3; sed -n ${{FIRST_EVENT}},${{LAST_EVENT}}p %IN > out.txt",
        nEventsPerWorker=5,
        maxAttemptES=1,
        allowPartialFinish=True,
    )

    def run() -> None:
        while Job.objects.filter(task_id=made, status="activated").exists():
            assert start().wait(120) == 0
            settle()

    def again() -> None:
        assert command(made, "retry").status == "done"
        settle()

    run()
    said = "1 of 1 input file was processed, 5 events were given up"
    assert (status(made), task(made).error_dialog) == ("finished", said)
    assert File.objects.get(task_id=made, type="input").status == "partial"
    lines = LINES.splitlines(keepends=True)
    most, rest = b"".join(lines[:10] + lines[15:]), b"".join(lines[10:15])
    assert results(made) == [most]
    read = Dataset.objects.get(task_id=made, type="input")
    assert (read.files_finished, read.events, read.events_used, read.status) == (1, EVENTS, EVENTS - 5, "finished")
    assert_books_balance()
    again()
    run()
    assert (status(made), (task(made).error_dialog or "").partition(". ")[0]) == ("finished", said), (
        "it fails as before"
    )
    assert File.objects.get(task_id=made, type="input").status == "partial" and results(made) == [most]
    assert_books_balance()
    go.touch()
    again()
    assert [(row.min_event, row.max_event) for row in Event.objects.filter(status=EventStatus.READY)] == [(11, 15)]
    run()
    assert (status(made), results(made)) == ("done", [most, rest])
    read.refresh_from_db()
    assert (read.files_finished, read.events_used, read.status) == (1, EVENTS, "done")
    assert_books_balance()
    output = File.objects.filter(task_id=made, type="output", status="finished").order_by("id")[0]
    Path(urllib.parse.unquote((output.surl or "").removeprefix("file://localhost"))).unlink()
    found = recover(made, [output.lfn], by="ada", reason="it is gone")
    assert len(found.also_lost) == 1, "all of the file is processed again"
    read.refresh_from_db()
    assert (read.files_finished, read.events_used) == (0, 0)
    assert_books_balance()
    settle()
    run()
    assert (status(made), results(made)) == ("done", [LINES])
    assert_books_balance()


def test_a_job_with_several_files_processes_all_lines_of_each(inputs: Path, start: Start) -> None:
    (inputs / "in" / "lab.more.txt").write_bytes(LINES)
    call_command("register_dataset", "lab.two", str(inputs / "in"), events=EVENTS)
    made = submitted(
        "sed -n ${FIRST_EVENT},${LAST_EVENT}p %IN > out.txt",
        dataset="lab.two",
        nFilesPerJob=None,
        nEventsPerInputFile=None,
        useRealNumEvents=True,
        nEventsPerWorker=10,
    )
    assert Job.objects.filter(task_id=made).count() == 1
    for _ in ("consumer", "merge"):
        assert start().wait(120) == 0
        settle()
    assert status(made) == "done", task(made).error_dialog
    assert results(made) == [LINES + LINES]
