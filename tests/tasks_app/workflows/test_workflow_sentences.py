"""What a workflow does and waits for, in words."""

from __future__ import annotations

from typing import Any

import pytest

from tasks_app.workflows.rules.definition_files import read_definition
from tasks_app.workflows.rules.package_states import PackageStatus
from tasks_app.workflows.rules.workflow_sentences import WorkflowFacts, sentence_of

_P = PackageStatus
U, Q, R, S, F, C = _P.UNSCHEDULED, _P.SCHEDULED, _P.LAUNCHED, _P.SUCCESSFUL, _P.FAILED, _P.CANCELED
TEXT = """job four
stage
line
binary reco
run a
out a
line
binary reco
run b
out b
stage
line
binary merge
run c
in a b
out c
stage
line
binary plot
run d
in c
"""
GRAPH = read_definition(TEXT)[1]
WAIT = {0: "All 3 sites were skipped."}


@pytest.mark.parametrize(
    ("statuses", "more", "said"),
    [
        (
            (U, U, U, U),
            {"has_begun": False},
            "It has been on hold since it was submitted, and begins when ada resumes it.",
        ),
        ((U, U, U, U), {}, "2 packages wait for a job. 2 packages wait for files of other packages."),
        (
            (U, S, U, U),
            {"why": WAIT},
            "1 of 4 packages has succeeded. Package 001/001/001 waits for a job: All 3 sites were skipped. 2 packages wait for "
            "files of other packages.",
        ),
        (
            (R, Q, U, U),
            {"sites": {0: "FARM", 1: "LAB"}},
            "1 package runs at FARM, 1 package has a job that waits for a pilot. 2 packages wait for files of other packages.",
        ),
        (
            (R, R, U, U),
            {"sites": {0: "A", 1: "B"}},
            "2 packages run at 2 queues. 2 packages wait for files of other packages.",
        ),
        (
            (S, F, U, U),
            {"failures": {1: {"no beam file": 2}}, "blocked": 2},
            "1 of 4 packages has succeeded. Package 001/002/001 (reco) has failed, twice with “no beam file”, and 2 packages "
            "wait for it. Retry it, or drop its line.",
        ),
        (
            (F, F, U, U),
            {"failures": {0: {"a": 1}, 1: {"a": 2, "b": 1}}, "blocked": 2},
            "2 packages have failed, 3 times with “a”, and 2 packages wait for them. Retry them, or drop their lines.",
        ),
        (
            (F, C, U, U),
            {"blocked": 2},
            "Package 001/001/001 (reco) has failed, and 2 packages wait for it. Retry it, or drop its line. "
            "1 package was dropped.",
        ),
        ((U, U, U, U), {"is_held": True}, "It is on hold: nothing starts until it is resumed."),
        ((S, S, S, S), {}, "All 4 packages have succeeded."),
        ((S, C, S, S), {}, "3 of 4 packages have succeeded. 1 package was dropped."),
        ((C, C, C, C), {}, "All of its packages were dropped or killed: nothing runs any more."),
        (
            (S, R, U, U),
            {"is_held": True, "sites": {1: "FARM"}},
            "1 of 4 packages has succeeded. 1 package runs at FARM. It is on hold: nothing else starts until it is resumed.",
        ),
    ],
)
def test_a_workflow_says_what_it_waits_for(statuses: Any, more: dict[str, Any], said: str) -> None:
    assert sentence_of(GRAPH, WorkflowFacts("ada", statuses, **more)) == said


def test_a_long_reason_is_cut() -> None:
    found = sentence_of(GRAPH, WorkflowFacts("ada", (F, S, U, U), failures={0: {"x" * 5000: 1}}))
    assert len(found) < 500 and "…" in found
