"""Each act has its words, and each command the function that carries it out."""

from __future__ import annotations

from tasks_app.commands import obeying
from tasks_app.commands.act_words import QUESTIONS, question
from tasks_app.domain.task_commands import COMMANDS, TaskCommand
from tasks_app.params.acts import ACTS, JOB_ACTS


def test_each_command_is_carried_out_by_a_function() -> None:
    assert set(obeying.HANDLERS) == set(COMMANDS) == set(TaskCommand)


def test_every_act_has_a_question_in_plain_english() -> None:
    assert set(QUESTIONS) == {*ACTS, *JOB_ACTS}
    assert question("needs", "task 7") == "Change what jobs of task 7 need"
    assert all(":" not in question(name, "task 7") for name in QUESTIONS)
