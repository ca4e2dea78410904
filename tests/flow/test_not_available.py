"""What this site has not is refused at each door, whatever asks for it: the submitter, a refiner, a change, an older row."""

from __future__ import annotations

from typing import Any

import pytest

from jedisite.identity.callers import Caller, Role
from tasks_app.models import Task, TaskParams
from tasks_app.params.faults import ParamErrors
from tasks_app.submission import known_names, parameter_changes, submitting
from tests.flow.driving import add_dataset, parameters, reads, settle, status, submit, task
from tests.flow.pilot import Pilot, drive
from tests.flow.test_commands import command

pytestmark = pytest.mark.usefixtures("books")
BOSS = Caller("ada", frozenset({Role.PRODUCTION}))


def production(**more: Any) -> dict[str, Any]:
    add_dataset("lab.in", 2)
    return parameters("lab.t", reads("lab.in"), vo="atlas", prodSourceLabel="managed", taskType="prod", **more)


@pytest.mark.parametrize("asked", [{"esConvertible": True}, {"registerEsFiles": True}, {"mergeEsOnOS": True}])
def test_a_task_of_production_that_asks_for_it_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(ParamErrors, match=f"{next(iter(asked))}: This asks for .*, which this site does not offer"):
        submitting.submit(submitting.check(production(**asked), BOSS), by="ada")
    assert not Task.objects.exists()


def test_a_task_of_production_that_asks_for_none_of_it_is_taken() -> None:
    raw = production(esFraction=0, esConvertible=False, nJumboJobs=0)
    assert submitting.submit(submitting.check(raw, BOSS), by="ada").task_id


def test_a_task_that_was_taken_before_breaks_with_the_sentence() -> None:
    made = submit(production())
    row = TaskParams.objects.get(pk=made)
    row.params["mergeEsOnOS"] = True
    row.save()
    settle()
    assert status(made) == "broken" and "mergeEsOnOS: This asks for merging of events in an object store" in (
        task(made).error_dialog or ""
    )


def test_what_stands_in_the_split_rule_alone_is_seen_when_the_task_runs_again() -> None:
    add_dataset("lab.t.in", 2)
    made = submit(parameters("lab.t", reads("lab.t.in"), nFilesPerJob=1))
    drive(Pilot())
    Task.objects.filter(pk=made).update(split_rule=f"{task(made).split_rule},RE=1")
    add_dataset("lab.more", 2)
    command(made, "incexec", parameters={"changes": {"dsForIN": "lab.more"}})
    settle()
    assert status(made) == "broken" and "registerEsFiles: This asks for files of single events" in (
        task(made).error_dialog or ""
    )


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"registerEsFiles": True}, "This asks for"),
        ({"nJumboJobs": 2}, "The task is not one of event service"),
        ({"nEventsPerWorker": 5}, "The task is not one of event service"),
        ({"nEsConsumers": 3}, "The task is not one of event service"),
    ],
)
def test_the_rule_of_an_open_task_is_not_changed_to_it(values: dict[str, Any], said: str) -> None:
    add_dataset("lab.t.in", 2)
    made = submit(parameters("lab.t", reads("lab.t.in"), nFilesPerJob=1))
    settle()
    before = task(made).split_rule
    with pytest.raises(ParamErrors, match=f"{next(iter(values))}: {said}"):
        parameter_changes.change_split_rule(made, values, by="ada", reason="faster")
    assert task(made).split_rule == before


def test_changes_that_come_with_a_command_are_refused_where_it_is_given() -> None:
    with pytest.raises(ParamErrors, match=r"changes\.registerEsFiles: This asks for files"):
        known_names.check_parameters({"changes": {"registerEsFiles": True}})
    known_names.check_parameters({"changes": {"nJumboJobs": None, "nEsConsumers": 1}})
