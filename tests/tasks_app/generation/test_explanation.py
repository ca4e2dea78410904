"""Why a turn made no jobs, or not all, and until when the task waits."""

from __future__ import annotations

import pytest

from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.verdict import Choice, Verdict
from tasks_app.generation.rules import explanation
from tasks_app.generation.rules.explanation import NOT_FILLED, Explanation, Until
from tasks_app.generation.rules.job_plan import JobPlan
from tasks_app.generation.rules.sources import DatasetRow, Picked, Source
from tasks_app.params.buildstep import BadBuildError
from tasks_app.params.placeholders import UnresolvedPlaceholder

HERE = Verdict((Choice("A", 1.0),))
FULL = Verdict(skipped=(Skip("A", codes.QUEUE_FULL, "has 20 of 20"), Skip("B", codes.SITE_OFFLINE, "is offline")))
NOWHERE = Verdict(skipped=(Skip("B", codes.SITE_OFFLINE, "is offline"),))
BIG_WAIT = f"Files that need 3000 MB wait: {NOWHERE.sentence()}"


@pytest.mark.parametrize(
    ("jobs", "lacks", "unplaced", "verdict", "input_left", "expected"),
    [
        (5, "", {}, HERE, True, None),
        (5, "", {}, NOWHERE, True, None),
        (5, "lacks", {3000: NOWHERE}, HERE, True, Explanation(BIG_WAIT, Until.NEXT_PASS)),
        (0, "lacks", {3000: NOWHERE}, HERE, True, Explanation("lacks", Until.GRID_CHANGED)),
        (0, "", {3000: NOWHERE}, HERE, True, Explanation(BIG_WAIT, Until.GRID_CHANGED)),
        (
            0,
            "",
            {4000: FULL, 3000: FULL},
            HERE,
            True,
            Explanation(
                f"Files that need 3000 MB wait: {FULL.sentence()} Files that need 4000 MB wait: {FULL.sentence()}",
                Until.ROOM,
            ),
        ),
        (0, "", {}, HERE, True, Explanation(NOT_FILLED, Until.ROOM)),
        (0, "", {}, HERE, False, Explanation("", Until.ROOM)),
        (0, "", {}, FULL, True, Explanation(FULL.sentence(), Until.ROOM)),
        (0, "", {}, NOWHERE, True, Explanation(NOWHERE.sentence(), Until.GRID_CHANGED)),
        (0, "", {}, Verdict(), True, Explanation(Verdict().sentence(), Until.GRID_CHANGED)),
    ],
)
def test_the_explanation_of_a_turn(
    jobs: int,
    lacks: str,
    unplaced: dict[int, Verdict],
    verdict: Verdict,
    input_left: bool,
    expected: Explanation | None,
) -> None:
    found = explanation.of_turn(jobs, lacks=lacks, unplaced=unplaced, verdict=verdict, input_left=input_left)
    assert found == expected


@pytest.mark.parametrize(
    ("grows", "said"),
    [
        (False, "the secondary dataset lab.pile has too few files left for the next job"),
        (True, "the secondary dataset lab.pile has too few files left for the next job; it still grows"),
    ],
)
def test_a_secondary_dataset_that_is_short(grows: bool, said: str) -> None:
    row = DatasetRow(2, "lab.pile", "input", "IN2", "", 0, 3, 3, grows=grows)
    assert explanation.lacking(JobPlan(short_of=Source(row, Picked([])))) == said


def test_jobs_that_are_too_short_and_jobs_that_lack_nothing_but_room() -> None:
    said = "the next job would be too short for the sites that could run it: A, B"
    assert explanation.lacking(JobPlan(too_short=("A", "B"))) == said
    assert explanation.lacking(JobPlan()) == ""


def test_what_ends_a_turn_before_a_broker_is_asked() -> None:
    assert explanation.unread("lab.in", "toupdate") == Explanation(
        "the input dataset lab.in is toupdate: its files have to be read first", Until.INPUT_READ
    )
    assert explanation.impossible(BadBuildError("no archive")) == Explanation(
        "its sources cannot be built: no archive", Until.NEVER
    )
    assert explanation.impossible(UnresolvedPlaceholder("X")).sentence.startswith(
        "the parameters of a job cannot be made: "
    )


def test_each_wait_in_place_has_a_length() -> None:
    assert set(explanation.WAITS) == set(Until) - {Until.GRID_CHANGED, Until.NEVER}
