"""What becomes of consumers that have ended: the worked cases of the documents, and what must hold of any."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events_app.ends.jobset_lines import LINES
from events_app.rules.consumer_ends import (
    _ENDS,
    MERGES,
    NOBODY_LEFT,
    PARTIAL,
    RETRIES,
    ConsumerEnd,
    ConsumerFacts,
    Verdict,
    decide,
    leaves_to_jumbo,
    nobody_goes_on,
    outcome,
    with_earlier,
)
from events_app.rules.fine_ends import FineEnd
from tasks_app.domain.range_jobs import TOO_LONG
from tasks_app.domain.states import JobStatus
from tasks_app.domain.sub_status_words import WORDS

V, J = Verdict, JobStatus
MORE = {"attempt": 1, "max_attempt": 4}


@pytest.mark.parametrize(
    ("facts", "verdict", "end"),
    [
        pytest.param(
            ConsumerFacts(done=3, any_done=True, **MORE),
            V.MERGE,
            ConsumerEnd(J.MERGING, "es_merge", 112),
            id="one consumer does all",
        ),
        pytest.param(
            ConsumerFacts(done=2, any_done=True, others=True, is_last=False, **MORE),
            V.WAIT,
            ConsumerEnd(J.MERGING, "es_wait", 115),
            id="the first of two consumers",
        ),
        pytest.param(
            ConsumerFacts(done=1, any_done=True, **MORE),
            V.MERGE,
            ConsumerEnd(J.MERGING, "es_merge", 112),
            id="the second of two",
        ),
        pytest.param(
            ConsumerFacts(done=1, left=2, any_done=True, **MORE),
            V.RETRY,
            ConsumerEnd(J.MERGING, "es_retry", 111),
            id="a failure and a release",
        ),
        pytest.param(
            ConsumerFacts(left=3, **MORE),
            V.RETRY_WITHOUT_RESULT,
            ConsumerEnd(J.CLOSED, "es_noevent", 123),
            id="nothing processed",
        ),
        pytest.param(
            ConsumerFacts(left=3, attempt=4, max_attempt=4),
            V.LAST_FAILED,
            ConsumerEnd(J.FAILED, "", 118),
            id="nothing processed at the last attempt",
        ),
        pytest.param(
            ConsumerFacts(left=3, attempt=4, max_attempt=4, is_last=False),
            V.DID_NOTHING,
            ConsumerEnd(J.CLOSED, "es_inaction", 117),
            id="at the last attempt beside another consumer",
        ),
        pytest.param(
            ConsumerFacts(done=1, any_done=True, hopeless=1, **MORE),
            V.LAST_FAILED,
            ConsumerEnd(J.FAILED, "", 118),
            id="fatal",
        ),
        pytest.param(
            ConsumerFacts(done=1, any_done=True, hopeless=1, accepts_partial=True, **MORE),
            V.MERGE,
            ConsumerEnd(J.MERGING, "partial", 112),
            id="fatal, and a partial result is accepted",
        ),
        pytest.param(
            ConsumerFacts(hopeless=2, **MORE), V.ALL_FAILED, ConsumerEnd(J.FAILED, "", 119), id="all ranges failed"
        ),
        pytest.param(
            ConsumerFacts(hopeless=2, accepts_partial=True, **MORE),
            V.ALL_FAILED,
            ConsumerEnd(J.FAILED, "", 119),
            id="all failed, although a partial result is accepted",
        ),
        pytest.param(
            ConsumerFacts(done=1, from_jumbo=2, left=1, any_done=True, **MORE),
            V.RETRY,
            ConsumerEnd(J.MERGING, "es_retry", 111),
            id="jumbo jobs did two, one is tried again",
        ),
        pytest.param(
            ConsumerFacts(from_jumbo=2, any_done=True, **MORE),
            V.MERGE_OF_OTHERS,
            ConsumerEnd(J.CLOSED, "es_merge", 112),
            id="jumbo jobs did all",
        ),
        pytest.param(
            ConsumerFacts(any_done=True, **MORE),
            V.DID_NOTHING,
            ConsumerEnd(J.CLOSED, "es_inaction", 117),
            id="others did all",
        ),
        pytest.param(
            ConsumerFacts(any_done=True, hopeless=1, accepts_partial=True, **MORE),
            V.MERGE_OF_OTHERS,
            ConsumerEnd(J.CLOSED, "partial", 112),
            id="it tried in vain what others left, and a partial result is accepted",
        ),
        pytest.param(
            ConsumerFacts(any_done=True, hopeless=1, accepts_partial=True, is_last=False, **MORE),
            V.DID_NOTHING,
            ConsumerEnd(J.CLOSED, "es_inaction", 117),
            id="the same beside another consumer",
        ),
        pytest.param(
            ConsumerFacts(any_done=True, all_done_before=True, **MORE),
            V.MERGE_OF_OTHERS,
            ConsumerEnd(J.CLOSED, "es_merge", 112),
            id="all was done before",
        ),
        pytest.param(
            ConsumerFacts(others=True, is_last=False, **MORE),
            V.DID_NOTHING,
            ConsumerEnd(J.CLOSED, "es_inaction", 117),
            id="nothing for it, others are at work",
        ),
        pytest.param(
            ConsumerFacts(left=2, status=J.DEFINED, **MORE),
            V.BAD_STATUS,
            ConsumerEnd(J.CLOSED, "es_badstatus", 126),
            id="it never began",
        ),
    ],
)
def test_how_it_goes_on(facts: ConsumerFacts, verdict: Verdict, end: ConsumerEnd) -> None:
    assert decide(facts) is verdict
    assert outcome(verdict, facts) == end


def test_a_consumer_that_was_ended_before_stays_as_it_is() -> None:
    assert outcome(V.HARMLESS, ConsumerFacts()) is None


FACTS = st.builds(
    ConsumerFacts,
    done=st.integers(0, 2),
    from_jumbo=st.integers(0, 2),
    left=st.integers(0, 2),
    others=st.booleans(),
    any_done=st.booleans(),
    hopeless=st.integers(0, 2),
    attempt=st.integers(1, 3),
    max_attempt=st.integers(1, 3),
    is_last=st.booleans(),
    status=st.sampled_from([J.RUNNING, J.HOLDING, J.DEFINED, J.PENDING]),
    all_done_before=st.booleans(),
    accepts_partial=st.booleans(),
)


@given(FACTS)
def test_a_jobset_is_merged_only_when_nothing_is_left_and_goes_on_only_when_something_is(facts: ConsumerFacts) -> None:
    verdict = decide(facts)
    if verdict in MERGES:
        assert facts.nothing_left and facts.any_done and (not facts.hopeless or facts.accepts_partial)
    if verdict in RETRIES:
        assert facts.left and facts.attempt < facts.max_attempt
    if facts.left and verdict not in RETRIES:
        assert facts.attempt >= facts.max_attempt or verdict is V.BAD_STATUS
    end = outcome(verdict, facts)
    assert end is not None and end.status in (J.MERGING, J.CLOSED, J.FAILED)


@pytest.mark.parametrize(
    ("verdict", "how", "nobody", "to_jumbo"),
    [
        (V.RETRY, {"made_job": True}, False, False),
        (V.RETRY, {}, True, False),
        (V.RETRY, {"others_active": True}, False, False),
        (V.DID_NOTHING, {}, True, False),
        (V.DID_NOTHING, {"uses_jumbo": True}, True, True),
        (V.WAIT, {}, False, False),
        (V.WAIT, {"uses_jumbo": True}, True, True),
        (V.BAD_STATUS, {}, True, False),
        (V.MERGE, {}, False, False),
        (V.LAST_FAILED, {}, False, False),
    ],
)
def test_a_jobset_is_not_left_to_nobody(verdict: Verdict, how: dict[str, bool], nobody: bool, to_jumbo: bool) -> None:
    given_ = {"made_job": False, "others_active": False, "uses_jumbo": False, **how}
    assert nobody_goes_on(verdict, **given_) is nobody
    assert leaves_to_jumbo(verdict, uses_jumbo=given_["uses_jumbo"]) is to_jumbo
    assert NOBODY_LEFT == 125


def test_people_are_told_what_each_sub_status_means() -> None:
    words = {end.sub_status for end in _ENDS.values()} | {line.sub_status for line in LINES.values()}
    words |= {PARTIAL, TOO_LONG, "es_heartbeat", "es_preempted", *(end.value for end in FineEnd)}
    assert words - {""} <= set(WORDS)
    assert not any(said.endswith(".") or said != said.strip() for said in WORDS.values())


CLOSED, FAILED = ConsumerEnd(J.CLOSED, "es_inaction", 117), ConsumerEnd(J.FAILED, "", 118)


@pytest.mark.parametrize(
    ("end", "before", "more", "expected"),
    [
        (FAILED, "pilot_failed", {"preemptable": True}, (J.FAILED, "pilot_failed")),
        (FAILED, "es_heartbeat", {}, (J.FAILED, "es_heartbeat")),
        (FAILED, "es_heartbeat", {"preemptable": True}, (J.CLOSED, "es_preempted")),
        (CLOSED, "pilot_killed", {}, (J.FAILED, "pilot_killed")),
        (CLOSED, "pilot_killed", {"preemptable": True}, (J.CLOSED, "es_preempted")),
        (ConsumerEnd(J.MERGING, "es_merge", 112), "pilot_killed", {}, (J.MERGING, "es_merge")),
        (CLOSED, "", {"events": 5}, (J.MERGING, "es_wait")),
        (FAILED, "es_toolong", {"events": 5}, (J.MERGING, "es_toolong")),
        (CLOSED, "es_toolong", {}, (J.CLOSED, "es_toolong")),
        (ConsumerEnd(J.MERGING, "es_merge", 112), "es_toolong", {}, (J.MERGING, "es_merge")),
        (FAILED, "pilot_noevents", {"has_error": True}, (J.CLOSED, "pilot_noevents")),
        (FAILED, "", {"has_error": True}, (J.FAILED, "")),
        (FAILED, "es_wait", {}, (J.CLOSED, "es_wait")),
        (ConsumerEnd(J.FAILED, "", 119), "", {"events": 5}, (J.FAILED, "")),
    ],
)
def test_what_the_job_said_before_counts(
    end: ConsumerEnd, before: str, more: dict[str, bool | int], expected: tuple[JobStatus, str]
) -> None:
    found = with_earlier(end, before, **{"preemptable": False, "events": 0, "has_error": False, **more})  # type: ignore[arg-type]
    assert (found.status, found.sub_status) == expected
