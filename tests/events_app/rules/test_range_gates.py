"""The gate of ranges: what it says, and when it stops a task."""

from __future__ import annotations

import pytest

from events_app.rules import range_refusals
from events_app.rules.range_gates import RangeFacts, ask
from events_app.rules.range_standing import Standing, counts

R, C, F, D, M, X, H = (
    Standing.READY,
    Standing.SENT,
    Standing.FINISHED,
    Standing.DONE,
    Standing.MERGED,
    Standing.FAILED,
    Standing.HOPELESS,
)


@pytest.mark.parametrize(
    ("numbers", "consumers", "merge_jobs", "answer", "code", "sentence"),
    [
        ({}, 0, 0, "not asked", "", "its files have no ranges yet; they are made with its first consumers"),
        (
            {Standing.PAST: 9},
            0,
            0,
            "not asked",
            "",
            "its files have no ranges yet; they are made with its first consumers",
        ),
        ({C: 40}, 3, 0, "yes", "", "no range is ready: 40 are at 3 consumers"),
        ({R: 1, C: 1}, 1, 0, "yes", "", "1 range is ready, 1 is at 1 consumer"),
        ({C: 2}, 0, 0, "yes", "", "no range is ready: 2 are at consumers that have ended"),
        ({R: 5, D: 5}, 1, 0, "yes", "", "5 ranges are ready, 5 wait to be merged"),
        (
            {R: 5},
            0,
            0,
            "no",
            range_refusals.RANGES_WITHOUT_CONSUMER,
            "5 ranges are ready, and no consumer is open that could take them",
        ),
        (
            {H: 12, M: 8},
            0,
            1,
            "no",
            range_refusals.RANGES_WITHOUT_ATTEMPTS,
            "of 20 ranges 8 are merged, 12 have no attempt left",
        ),
        ({H: 1, C: 2}, 1, 0, "yes", "", "no range is ready: 2 are at 1 consumer, 1 has no attempt left"),
        (
            {D: 30},
            0,
            0,
            "no",
            range_refusals.RANGES_NOT_MERGED,
            "of 30 ranges 30 wait to be merged, and no merge job is open",
        ),
        ({D: 30}, 0, 1, "yes", "", "of 30 ranges 30 wait to be merged"),
        ({F: 2, X: 1}, 1, 0, "yes", "", "of 3 ranges 2 are finished, 1 failed and will be tried again"),
        ({M: 7}, 0, 0, "yes", "", "of 7 ranges 7 are merged"),
    ],
)
def test_the_gate_of_ranges(
    numbers: dict[Standing, int], consumers: int, merge_jobs: int, answer: str, code: str, sentence: str
) -> None:
    gate = ask(RangeFacts(counts(numbers.items()), consumers, consumers, merge_jobs, begun=consumers))
    assert (gate.answer, gate.code, gate.sentence) == (answer, code, sentence)


def test_ranges_that_wait_for_the_first_pilot_make_no_progress_yet() -> None:
    gate = ask(RangeFacts(counts([(R, 75)]), consumers=3))
    assert (gate.answer, gate.sentence) == (
        "not asked",
        "75 ranges are ready, and 3 consumers wait for a pilot to begin",
    )
    assert ask(RangeFacts(counts([(R, 75)]), consumers=3, begun=1)).answer == "yes"


@pytest.mark.parametrize(
    ("silent", "consumers", "more"),
    [
        (None, 2, ""),
        (599, 2, ""),
        (2400, 2, "; one of the consumers has reported no range for 40 min"),
        (7200, 1, "; the consumer has reported no range for 2 h"),
    ],
)
def test_a_consumer_that_is_silent_is_said_to_be(silent: float | None, consumers: int, more: str) -> None:
    gate = ask(RangeFacts(counts([(R, 5), (C, 4)]), consumers, 1, begun=consumers, silent=silent))
    assert (gate.answer, gate.sentence) == ("yes", f"5 ranges are ready, 4 are at 1 consumer{more}")
    done = ask(RangeFacts(counts([(D, 5)]), consumers, begun=consumers, silent=silent))
    assert done.sentence == "of 5 ranges 5 wait to be merged", "none is at a consumer"


def test_consumers_without_ranges_are_not_said_to_have_some() -> None:
    assert ask(RangeFacts(counts([(C, 4)]), 5, 2)).sentence == "no range is ready: 4 are at 2 consumers"


def test_a_gate_that_did_not_count_all_says_so() -> None:
    gate = ask(RangeFacts(counts([(M, 7)]), is_capped=True))
    assert gate.sentence == "of 7 ranges 7 are merged (of the first ones, since the task has too many to count)"
