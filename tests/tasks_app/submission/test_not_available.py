"""What the site does not offer is refused where it is asked for, with what to do instead."""

from __future__ import annotations

from typing import Any

import pytest

from jedisite.vocabulary.roles import Caller, Role
from tasks_app.params.faults import ParamErrors
from tasks_app.submission import parameter_changes, submitting
from tests.flow.driving import parameters

ADA = Caller("ada", frozenset({Role.PRODUCTION}))
REFUSED: list[tuple[str, Any, str]] = [
    ("maxNumJobs", 3, "nFiles or nEvents"),
    ("totNumJobs", 3, "nFiles or nEvents"),
    ("objectStore", "root^os.example^/es", "an object store"),
    ("altStageOut", "on", "tried again, elsewhere if need be"),
    ("prestagingRuleID", {"lab:lab.in": "1"}, "Use inputPreStaging"),
    ("selfPrestagingRule", "1", "Use inputPreStaging"),
    ("remove_rule_when_done", True, "where other tasks read them"),
    ("useInFilesInContainer", True, "Give the container as the dataset"),
    ("putLogToOS", True, "logs are stored where the outputs are"),
    ("usePrefetcher", True, "allowInputLAN"),
    ("useZipToPin", True, "inputs are copied as they are"),
    ("osMatching", True, "system in architecture"),
    ("pushJob", True, "pilots fetch jobs"),
    ("encJobParams", True, "as they are written"),
]


@pytest.mark.django_db
@pytest.mark.parametrize(("name", "value", "instead"), REFUSED, ids=[name for name, _, _ in REFUSED])
def test_a_parameter_without_anything_here_to_act_on_is_refused(name: str, value: Any, instead: str) -> None:
    with pytest.raises(ParamErrors) as refused:
        submitting.submit(
            submitting.check(parameters("lab.t", noInput=True, nEvents=1, **{name: value}), ADA), by="ada"
        )
    (error,) = [error for error in refused.value.errors if error.field == name]
    assert error.message.startswith("This asks for ") and instead in error.message


@pytest.mark.django_db
def test_what_every_job_does_anyhow_may_be_asked_for() -> None:
    asked = parameters("lab.t", noInput=True, nEvents=1, altStageOut="off")
    assert submitting.submit(submitting.check(asked, ADA), by="ada").task_id


def test_nor_does_the_split_rule_of_a_task_at_work_take_it() -> None:
    with pytest.raises(ParamErrors, match="useZipToPin: This asks for pins"):
        parameter_changes.check_rules({"useZipToPin": True})
    assert parameter_changes.check_rules({"nFilesPerJob": 3, "useZipToPin": None}) == {
        "nFilesPerJob": 3,
        "useZipToPin": None,
    }
