"""Files that are taken out of the input of a task at work: no job gets them any more, and the task ends without them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tasks_app.agents import commando, feeder, job_generator, refiner
from tasks_app.domain.task_commands import TaskCommand
from tasks_app.models import Command, Dataset, File, Job, JobFile, Task, TaskStatusLog
from tasks_app.submission import command_queue
from tests.flow.balance import assert_books_balance
from tests.flow.driving import (
    add_dataset,
    add_files,
    dataset,
    files,
    inputs,
    jobs,
    look_again,
    parameters,
    reads,
    settle,
    status,
    submit,
    task,
)
from tests.flow.pilot import Pilot, drive, failing_on
from tests.flow.threads import together

pytestmark = pytest.mark.usefixtures("books")
A, B = "lab.a", "lab.b"


def name(number: int, of: str = A) -> str:
    return f"{of}.{number:05d}"


def remove(task_id: int, *numbers: int, of: str = A) -> Command:
    named = ", ".join(f"lab:{name(number, of)}" for number in numbers)
    given = command_queue.give_command(task_id, TaskCommand.REMOVE_FILES, by="ada", parameters={"files": named})
    commando.run()
    given.refresh_from_db()
    return given


def made_of(files: int, **more: object) -> int:
    add_dataset(A, files)
    made = submit(parameters("lab.t", reads(A), **{"nFilesPerJob": 1, **more}))
    refiner.run()
    feeder.run()
    return made


def counters(task_id: int) -> tuple[int, int, int, int, int]:
    """(files, to be used, used, finished, failed) of the input."""
    row = dataset(task_id)
    return row.files, row.files_to_be_used, row.files_used, row.files_finished, row.files_failed


def test_files_that_wait_are_removed_and_the_task_is_done_without_them() -> None:
    made = made_of(5)
    remove(made, 1, 3)
    assert counters(made) == (3, 3, 0, 0, 0)
    assert [f.status for f in files(made)] == ["ready", "removed", "ready", "removed", "ready"]
    assert_books_balance("removed")
    drive(Pilot())
    assert (status(made), counters(made)) == ("done", (3, 3, 3, 3, 0))
    assert [inputs(job.id) for job in jobs(made)] == [[name(0)], [name(2)], [name(4)]]
    log = list(TaskStatusLog.objects.filter(task_id=made).values_list("reason", flat=True))
    assert any("2 files are removed from its input" in reason for reason in log)


def test_a_file_that_always_fails_is_removed_and_no_longer_counts_as_failed() -> None:
    made = made_of(3, maxAttempt=1)
    settle()
    pilot = Pilot(failing_on(name(1)))
    pilot.work(2)
    settle()
    assert counters(made)[4] == 1
    remove(made, 1)
    assert counters(made) == (2, 2, 2, 1, 0)
    drive(Pilot())
    assert (status(made), counters(made)) == ("done", (2, 2, 2, 2, 0))


def test_files_that_jobs_have_or_that_are_processed_stay() -> None:
    made = made_of(3)
    settle()
    pilot = Pilot()
    pilot.work(1)
    settle()
    started = pilot.fetch(1)[0]
    with pytest.raises(command_queue.CommandRefusedError) as caught:
        remove(made, 0, 1, 7)
    assert dataset(made).files == 3
    assert f"{name(1)} is being processed by job {started['PandaID']}" in str(caught.value)
    assert f"{name(0)} is processed already" in str(caught.value)
    assert f"the task reads no file {name(7)}" in str(caught.value)


def test_a_removal_behind_another_is_refused_when_its_turn_comes() -> None:
    made = made_of(2)
    first, second = (
        command_queue.give_command(made, TaskCommand.REMOVE_FILES, by="ada", parameters={"files": name(0)})
        for _ in range(2)
    )
    commando.run()
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.status, second.status, second.answer) == ("done", "refused", f"{name(0)} is removed already")


def test_a_removed_file_does_not_come_back() -> None:
    add_dataset(A, 3, open=True)
    made = submit(parameters("lab.t", reads(A), nFilesPerJob=1, nChunksToWait=1, runUntilClosed=True))
    refiner.run()
    feeder.run()
    remove(made, 1)
    add_files(A, [3])
    look_again()
    feeder.run()
    assert [f.status for f in files(made)] == ["ready", "removed", "ready", "ready"]
    drive(Pilot())
    command_queue.give_command(made, "finish", by="ada")
    drive(Pilot())
    command_queue.give_command(made, "incexec", by="ada")
    drive(Pilot())
    assert [f.status for f in files(made)] == ["finished", "removed", "finished", "finished"]


def test_a_task_of_which_all_files_are_removed_ends_and_names_who_removed_them(client: Client, make_user: Any) -> None:
    made = made_of(2)
    Task.objects.filter(pk=made).update(error_dialog="All 2 sites were skipped: 2 too few cores")
    remove(made, 0, 1)
    drive(Pilot())
    assert (status(made), counters(made)[:2], jobs(made)) == ("failed", (0, 0), [])
    said = "all of its input was removed by ada"
    assert task(made).error_dialog == said
    log = TaskStatusLog.objects.filter(task_id=made, status="failed").get()
    assert log.reason == said
    with pytest.raises(command_queue.CommandRefusedError, match=f"task {made} is failed: {said}; nothing to retry$"):
        command_queue.give_command(made, "retry", by="ada")
    client.force_login(make_user("reader"))
    text = client.get(f"/tasks/{made}/").content.decode()
    assert "Failed: All of its input was removed by ada." in text and "look it up" not in text


def test_the_tab_of_files_counts_those_that_were_removed(client: Client, make_user: Any) -> None:
    made = made_of(4)
    remove(made, 2)
    drive(Pilot())
    client.force_login(make_user("reader"))
    shown = f'?dataset={dataset(made).pk}&amp;status=removed">1 removed</a>'
    assert shown in client.get(f"/tasks/{made}/inputs/").content.decode()
    page = client.get(f"/tasks/{made}/").content.decode()
    assert shown in page and "3 of 3 files finished, 1 removed." in page


def test_scouts_get_no_removed_file() -> None:
    made = made_of(30, skipScout=False)
    assert counters(made)[:2] == (30, 10)
    remove(made, *range(25))
    assert counters(made)[:2] == (5, 5)
    assert_books_balance("removed")
    drive(Pilot())
    assert (status(made), len(jobs(made))) == ("done", 5)


def test_the_rest_of_a_group_goes_on() -> None:
    add_dataset(A, 4)
    text = "<submission><command>run</command>"
    for group in ((0, 1), (2, 3)):
        named = "".join(f"<file>{name(one)}</file>" for one in group)
        text += f"<job><inds><name>{A}</name>{named}</inds><output>o{group[0]}</output></job>"
    command = {"type": "constant", "value": "${XML_EXESTR}"}
    made = submit(parameters("lab.t", reads(A), command, loadXML=f"{text}</submission>"))
    refiner.run()
    feeder.run()
    remove(made, 1)
    drive(Pilot())
    assert status(made) == "done"
    assert [inputs(job.id) for job in jobs(made)] == [[name(0)], [name(2), name(3)]]


def test_what_goes_with_a_group_is_removed_with_its_first_input_only() -> None:
    add_dataset(A, 2)
    add_dataset(B, 2)
    text = "<submission><command>run</command>"
    for one in (0, 1):
        text += f"<job><inds><name>{A}</name><file>{name(one)}</file></inds>"
        text += f"<inds><name>{B}</name><file>{name(one, B)}</file></inds></job>"
    command = {"type": "constant", "value": "${XML_EXESTR}"}
    made = submit(
        parameters("lab.t", loadXML=f"{text}</submission>", jobParameters=[reads(A), reads(B, "IN2"), command])
    )
    refiner.run()
    feeder.run()
    with pytest.raises(command_queue.CommandRefusedError, match="remove those of the first input"):
        remove(made, 1, of=B)
    remove(made, 1)
    drive(Pilot())
    assert status(made) == "done"
    assert [inputs(job.id) for job in jobs(made)] == [[name(0), name(0, B)]]


def test_files_are_removed_while_jobs_are_made_of_them() -> None:
    made = made_of(64)

    def take(number: int) -> None:
        # Each of four takes sixteen files out, one by one, while four make jobs.
        for one in range(number * 16, number * 16 + 16):
            command_queue.give_command(made, TaskCommand.REMOVE_FILES, by="ada", parameters={"files": name(one)})
            commando.run()

    def make() -> None:
        for _ in range(8):
            job_generator.run(tasks=1, jobs_a_task=4)

    together(*(lambda number=number: take(number) for number in range(4)), make, make, make, make)
    commando.run()
    assert_books_balance("after the race")
    removed = set(File.objects.filter(task_id=made, status="removed").values_list("lfn", flat=True))
    used = list(JobFile.objects.filter(task_id=made, type="input").values_list("lfn", flat=True))
    assert len(used) == len(set(used)) and removed.isdisjoint(used)
    drive(Pilot())
    assert status(made) in ("done", "failed")
    assert len(removed) + Job.objects.filter(task_id=made, status="finished").count() == 64
    assert Dataset.objects.get(task_id=made, type="input").files == 64 - len(removed)
