"""Rules on ranges that do not get on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from events_app.rules import stalls
from events_app.rules.stalls import HopelessFact, IdleFact, UnmergedFact

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)


def test_consumers_that_process_nothing_for_hours_need_attention() -> None:
    fresh = IdleFact(6, "young", "ada", 3, NOW - stalls.IDLE_AFTER + timedelta(minutes=1))
    old = IdleFact(7, "slow", "ada", 2, NOW - timedelta(hours=9))
    (found,) = stalls.idle_consumers([fresh, old], NOW)
    assert found.sentence == "Task 7 slow: 2 consumers have processed no range for up to 9 h."
    assert (found.path, found.owner, found.size, found.since) == ("/tasks/7/events/", "ada", 2, old.since)


def test_ranges_without_attempts_need_attention() -> None:
    (one,) = stalls.hopeless_ranges([HopelessFact(7, "t", "ada", 1)])
    assert one.sentence == "Task 7 t: 1 range has no attempt left; its files cannot be processed completely."
    (many,) = stalls.hopeless_ranges([HopelessFact(7, "t", "ada", 12_000, True)])
    assert "at least 12\u202f000 ranges have no attempt left" in many.sentence
    rest = list(stalls.hopeless_ranges(HopelessFact(n, "t", "ada", n) for n in range(1, 20)))
    assert rest[-1].sentence == "14 more tasks have ranges without attempts."


def test_outputs_that_nobody_merges_need_attention() -> None:
    fresh = UnmergedFact(6, "t", "ada", 3, NOW - timedelta(minutes=5))
    old = UnmergedFact(7, "t", "ada", 1, NOW - timedelta(hours=3))
    (found,) = stalls.unmerged_outputs([fresh, old], NOW)
    assert found.sentence == (
        "Task 7 t: outputs of 1 consumer have waited to be merged for up to 3 h; no job of their jobsets is at work."
    )
