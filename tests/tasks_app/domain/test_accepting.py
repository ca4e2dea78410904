"""What a task answers to a command, given those that it is yet to obey."""

from __future__ import annotations

import pytest

from tasks_app.domain.accepting import Standing, refusal
from tasks_app.domain.states import TASK_MOVES, TaskStatus
from tasks_app.domain.task_commands import COMMAND_ACCEPTED_IN, COMMANDS, TaskCommand


def standing(status: str, *waiting: str, old: str | None = None, label: str = "user") -> Standing:
    return Standing(7, status, old, label, waiting)


WAIT = "wait until it has ended, then"
PAUSED_TAKES = [command.value for command, rule in COMMANDS.items() if TaskStatus.PAUSED in rule.accepted]


@pytest.mark.parametrize(
    ("task", "foreseen"),
    [
        (standing("running"), "running"),
        (standing("running", "pause"), "paused"),
        (standing("running", "pause", "resume"), "running"),
        (standing("running", "pause", "resume", "kill"), "aborting"),
        (standing("pending", "pause", "resume", old="scouting"), "scouting"),
        (standing("throttled", "resume", old="running"), "running"),
        (standing("paused", "resume"), "ready"),
        (standing("staging", "resume"), "staged"),
        (standing("running", "finish", "kill"), "aborting"),
        (standing("finished", "retry"), "ready"),
        (standing("running", "retry"), "running"),
        (standing("done", "incexec"), "rerefine"),
        (standing("running", "resume", "increase_attempts"), "running"),
        (standing("done", "kill"), "done"),
        (standing("running", "reassign"), "toreassign"),
    ],
)
def test_the_state_after_the_commands_that_wait(task: Standing, foreseen: str) -> None:
    assert task.foreseen == foreseen


@pytest.mark.parametrize(
    ("task", "command", "said"),
    [
        (standing("running", "pause"), "resume", None),
        (standing("running", "pause"), "kill", None),
        (standing("finished", "retry"), "kill", None),
        (standing("running", "kill"), "retry", f"running, with kill still to be carried out; {WAIT} retry is accepted"),
        (
            standing("running", "finish"),
            "incexec",
            f"running, with finish still to be carried out; {WAIT} incexec is accepted",
        ),
        (standing("aborting"), "retry", f"aborting; {WAIT} retry is accepted"),
        (
            standing("running", "kill"),
            "kill",
            "running, with kill still to be carried out; it is ending already; nothing to kill",
        ),
        (
            standing("running", "pause"),
            "retry",
            "running, with pause still to be carried out; retry is accepted in: aborted, exhausted, failed, finished, pending, "
            f"running, scouting; when it is paused it accepts {', '.join(PAUSED_TAKES)}",
        ),
        (
            standing("running", "pause", "resume"),
            "resume",
            "running; resume is accepted in: paused, staging, throttled; ",
        ),
        (
            standing("running", label="managed"),
            "retry",
            "running; only tasks with the label user are retried in this state",
        ),
    ],
)
def test_a_command_is_accepted_by_the_state_in_which_it_will_be_obeyed(
    task: Standing, command: str, said: str | None
) -> None:
    found = refusal(task, command)
    assert found is None if said is None else found is not None and found.startswith(f"task 7 is {said}")


@pytest.mark.parametrize("command", list(TaskCommand))
def test_what_is_foreseen_can_be_reached(command: TaskCommand) -> None:
    """In one move, or through the state that the command passes through."""
    for status in COMMAND_ACCEPTED_IN[command]:
        foreseen = standing(status, command).foreseen
        near = {status} | TASK_MOVES[status]
        assert foreseen in near | {after for one in near for after in TASK_MOVES[one]}, (status, foreseen)


def test_every_state_of_the_tables_has_an_answer_to_every_command() -> None:
    for status in TaskStatus:
        for command in TaskCommand:
            assert (refusal(standing(status), command) is None) == (status in COMMAND_ACCEPTED_IN[command])
