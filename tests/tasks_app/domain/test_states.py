"""The tables of states against the rows of the JEDI documents, and against the door that obeys them."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tasks_app.api.v2 import choices
from tasks_app.domain.states import (
    DATASET_MOVES,
    FILE_MOVES,
    FILE_STATES,
    JOB_FINAL,
    JOB_MOVES,
    TASK_FINAL,
    TASK_MOVES,
    FileStatus,
    IllegalMoveError,
    JobStatus,
    TaskStatus,
    check_task_move,
)
from tasks_app.domain.task_commands import COMMANDS
from tasks_app.lifecycle import task_moves
from tasks_app.lists.filtersets import FileFilter
from tasks_app.models import File, Task, TaskStatusLog
from tasks_app.web.help.machines import FILE_MEANING

TASK_ROWS = """
registered defined topreprocess staging pending tobroken toabort finishing
staging staged
staged defined pending tobroken
rerefine defined ready prepared pending tobroken
defined assigning ready pending tobroken finishing
assigning ready pending
ready scouting running prepared defined pending exhausted
scouting running scouted exhausted tobroken pending
scouted running
running prepared defined throttled pending paused exhausted
topreprocess preprocessing pending
preprocessing registered prepared pending
pending registered staged rerefine defined ready scouting running topreprocess exhausted
throttled running ready scouting prepared paused
paused registered defined ready scouting running throttled pending
prepared done finished failed exhausted
passed done finished failed
finishing passed
aborting toabort
toabort aborted
tobroken broken
exhausted finishing toretry toincexec scouting running
toretry ready
toincexec rerefine
toreassign reassigning running
reassigning assigning ready
finished toretry toincexec
aborted toretry toincexec
failed toincexec
done toincexec
"""
"""What each state may become by the documents: the state first."""

JOB_ROWS = """
pending defined
defined assigned activated closed failed
assigned activated
activated throttled sent closed cancelled failed
throttled activated cancelled
sent starting running holding failed
starting running holding failed
running holding failed cancelled
holding finished failed transferring merging
transferring merging finished failed
merging finished failed cancelled
"""


def pairs(rows: str) -> list[tuple[str, str]]:
    split = [line.split() for line in rows.split("\n") if line]
    return [(old, new) for old, *nexts in split for new in nexts]


@pytest.mark.django_db
@pytest.mark.parametrize(("old", "new"), pairs(TASK_ROWS))
def test_a_task_takes_each_move_of_the_documents(make_task: Callable[..., Task], old: str, new: str) -> None:
    task = make_task(status=old)
    moved = task_moves.move_task(task.id, new, by="test", reason="as the documents say")
    assert moved.status == new
    last = TaskStatusLog.objects.filter(task_id=task.id).latest("id")
    assert (last.old_status, last.status, last.by, last.reason) == (old, new, "test", "as the documents say")


@pytest.mark.django_db
@pytest.mark.parametrize("old", TaskStatus)
def test_the_door_refuses_every_move_that_the_table_does_not_have(
    make_task: Callable[..., Task], old: TaskStatus
) -> None:
    task = make_task(status=old)
    logged = TaskStatusLog.objects.filter(task_id=task.id).count()
    for new in set(TaskStatus) - TASK_MOVES[old]:
        with pytest.raises(IllegalMoveError, match=f"a task cannot go from {old} to {new}"):
            task_moves.move_task(task.id, new, by="test")
    task.refresh_from_db()
    assert task.status == old
    assert TaskStatusLog.objects.filter(task_id=task.id).count() == logged


def test_a_task_at_rest_starts_again_only_by_a_command() -> None:
    """One that is finished may be done later, with its parent: that is an end, too."""
    for final in TASK_FINAL:
        assert TASK_MOVES[final] - TASK_FINAL <= {TaskStatus.TORETRY, TaskStatus.TOINCEXEC}
    assert {old: TASK_MOVES[old] & TASK_FINAL for old in TASK_FINAL if TASK_MOVES[old] & TASK_FINAL} == {
        TaskStatus.FINISHED: {TaskStatus.DONE}
    }
    with pytest.raises(IllegalMoveError):
        check_task_move(TaskStatus.BROKEN, TaskStatus.READY)


@pytest.mark.parametrize(("old", "new"), pairs(JOB_ROWS))
def test_a_job_may_take_each_move_of_the_documents(old: str, new: str) -> None:
    assert JobStatus(new) in JOB_MOVES[JobStatus(old)]


def test_what_commands_say_has_no_number_that_is_decided_elsewhere() -> None:
    assert [rule.help for rule in COMMANDS.values() if re.search(r"\d", rule.help)] == []


def test_a_job_that_has_ended_stays_as_it_is_and_none_goes_back_to_the_queue_from_a_pilot() -> None:
    assert all(not JOB_MOVES[final] for final in JOB_FINAL)
    for held in (JobStatus.SENT, JobStatus.STARTING, JobStatus.RUNNING, JobStatus.HOLDING):
        assert not JOB_MOVES[held] & {JobStatus.ACTIVATED, JobStatus.THROTTLED, JobStatus.DEFINED}


def test_words_of_the_documents_that_are_no_states_of_files_here_are_offered_nowhere() -> None:
    words = {"broken", "prepared", "merging"}
    assert {status.value for status in FileStatus} - set(FILE_STATES) == words
    shown = [
        {value for value, _ in FileFilter.base_filters["status"].extra["choices"]},
        {value for value, _ in File._meta.get_field("status").choices or ()},
        set(FILE_MEANING),
        set(choices.FILE_STATUS),
    ]
    assert [states & words for states in shown] == [set()] * 4
    assert {frozenset(states) for states in shown} == {frozenset(FILE_STATES)}


@pytest.mark.parametrize("table", [*DATASET_MOVES.values(), *FILE_MOVES.values()])
def test_what_a_dataset_or_file_may_become_is_a_state_of_its_own_table(table: dict[str, frozenset[str]]) -> None:
    assert {new for nexts in table.values() for new in nexts} <= set(table)
