"""The table of the states of ranges against the rows of the JEDI documents."""

from __future__ import annotations

import pytest

from events_app.rules.event_states import (
    AT_WORK,
    EVENT_ACTS,
    EVENT_FINAL,
    EVENT_MOVES,
    HANDED_OUT,
    LIVE,
    PROCESSED,
    EventAct,
    EventStatus,
    Owner,
    Sweep,
    attempts_after_release,
    attempts_of_retry,
    before,
    check_event_move,
    is_hopeless,
    is_ready,
)
from tasks_app.domain.states import IllegalMoveError

S = EventStatus

ROWS = """
ready sent cancelled fatal
sent ready running finished failed cancelled
running ready finished failed cancelled
finished done discarded cancelled
done merged corrupted discarded cancelled
merged cancelled
"""
"""What each state may become: the state first."""


@pytest.mark.parametrize("row", ROWS.strip().splitlines())
def test_ranges_take_each_move_of_the_documents(row: str) -> None:
    old, *nexts = row.upper().split()
    assert {S[new] for new in nexts} <= EVENT_MOVES[S[old]]
    for new in nexts:
        check_event_move(S[old], S[new])


def test_the_numbers_are_those_of_the_table_of_events() -> None:
    words = "ready sent running finished cancelled discarded done failed fatal merged corrupted"
    assert [status.word for status in S] == words.split() and [int(status) for status in S] == list(range(11))


def test_ranges_at_rest_stay_as_they_are() -> None:
    assert {S.CANCELLED, S.DISCARDED, S.FAILED, S.CORRUPTED} == EVENT_FINAL
    with pytest.raises(IllegalMoveError, match="a range cannot go from failed to ready"):
        check_event_move(S.FAILED, S.READY)


def test_a_failed_range_is_tried_again_as_a_copy() -> None:
    retry = EVENT_ACTS[EventAct.RETRY]
    assert retry.copies and (retry.before, retry.after) == ({S.FAILED}, S.READY)
    assert [act for act, move in EVENT_ACTS.items() if move.copies] == [EventAct.RETRY]


def test_what_is_merged_can_only_be_lost() -> None:
    assert EVENT_MOVES[S.MERGED] == {S.CANCELLED} and before(EventAct.LOSE) == PROCESSED


def test_that_a_range_is_running_changes_nothing_of_what_may_follow() -> None:
    assert EVENT_MOVES[S.SENT] == EVENT_MOVES[S.RUNNING] | {S.RUNNING}


def test_sets_of_states_agree() -> None:
    assert HANDED_OUT < AT_WORK < LIVE and PROCESSED < LIVE and not EVENT_FINAL & LIVE
    assert set(S) == LIVE | EVENT_FINAL | {S.FATAL}
    assert {status for status, nexts in EVENT_MOVES.items() if nexts} == LIVE | {S.FATAL}
    assert EVENT_MOVES[S.FATAL] == {S.DISCARDED}, "when its file is tried again"


def test_statements_take_their_conditions_from_the_table() -> None:
    assert before(EventAct.FINISH, HANDED_OUT) == HANDED_OUT
    assert before(EventAct.CANCEL) == {S.READY, S.SENT, S.RUNNING}
    assert Sweep(EventAct.LOSE, Owner.FILES, among=frozenset({S.MERGED})).states == {S.MERGED}


@pytest.mark.parametrize(
    ("status", "attempts", "ready", "hopeless"),
    [
        (S.READY, 1, True, False),
        (S.READY, 0, False, True),
        (S.SENT, 1, False, False),
        (S.FAILED, 0, False, True),
        (S.FATAL, 0, False, True),
        (S.CANCELLED, 0, False, False),
        (S.DISCARDED, 0, False, False),
    ],
)
def test_a_range_without_attempts_is_hopeless(status: EventStatus, attempts: int, ready: bool, hopeless: bool) -> None:
    assert (is_ready(status, attempts), is_hopeless(status, attempts)) == (ready, hopeless)


@pytest.mark.parametrize(("attempts", "left", "kept"), [(3, 2, 3), (1, 0, 1), (0, 0, 0)])
def test_a_released_range_loses_an_attempt_unless_only_failures_count(attempts: int, left: int, kept: int) -> None:
    assert attempts_after_release(attempts, only_failed_count=False) == left
    assert attempts_after_release(attempts, only_failed_count=True) == kept
    assert attempts_after_release(attempts, only_failed_count=False, was_begun=False) == attempts
    assert attempts_of_retry(attempts) == left
