"""What becomes of a consumer of ranges that has ended, and of its jobset: merged, tried again, waiting, failed.

What the ranges were set to before is counted in `ConsumerFacts`; `decide` follows the order of PanDA's conditions, and
`outcome` says what the job is given. With acceptPartial a jobset whose other ranges are done is merged although some ranges
have no attempt left: PanDA fails it, so that its own word for a partial result is never reached. That holds for
the last consumer, too, when it has processed nothing itself: it has tried in vain what an earlier one left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

from tasks_app.domain.range_jobs import TOO_LONG
from tasks_app.domain.states import JobStatus


@dataclass(frozen=True, slots=True)
class ConsumerFacts:
    """A consumer at its end, after its ranges have been set done, released and copied for a retry.

    done            its own ranges that are done now; of a co-jumbo job `from_jumbo` besides, which jumbo jobs processed
    left            ranges of the jobset that are ready and have attempts
    others          ranges of its files that others have at work, or that are still to be tried again
    any_done        whether a range of its files is done
    hopeless        ranges of its files without attempts that were neither cancelled nor discarded
    all_done_before its ranges were done before it began (allOkEvents)
    is_last         no other job of the jobset is open
    """

    done: int = 0
    from_jumbo: int = 0
    left: int = 0
    others: bool = False
    any_done: bool = False
    hopeless: int = 0
    attempt: int = 1
    max_attempt: int = 1
    is_last: bool = True
    status: JobStatus = JobStatus.RUNNING
    all_done_before: bool = False
    accepts_partial: bool = False

    @property
    def nothing_left(self) -> bool:
        """All ranges are decided: what is done can be merged."""
        return not self.left and not self.others


class Verdict(Enum):
    """How it goes on; the values are PanDA's return codes."""

    RETRY = 0
    HARMLESS = 1
    MERGE = 2
    WAIT = 4
    DID_NOTHING = 5
    LAST_FAILED = 6
    ALL_FAILED = 7
    RETRY_WITHOUT_RESULT = 8
    BAD_STATUS = 9
    MERGE_OF_OTHERS = 10
    UNREADABLE = 11
    """PanDA has no such code: all is decided, and nobody knows where the outputs of some ranges are."""


V = Verdict
MERGES: Final = frozenset({V.MERGE, V.MERGE_OF_OTHERS})
"""A merge job is made, and the other consumers of the jobset are not needed."""
RETRIES: Final = frozenset({V.RETRY, V.RETRY_WITHOUT_RESULT})
"""Another consumer of the jobset is made."""
UNUSED, GENERATED_RETRY, GENERATED_MERGE, WAITS = 116, 111, 112, 115
INACTION, LAST_OF_ALL, ALL_RANGES_FAILED = 117, 118, 119
NO_EVENT, INCONSISTENT, NOBODY_LEFT, WRONG_STATUS = 123, 124, 125, 126
"""Codes of the task buffer."""
SETTLED: Final = frozenset({GENERATED_RETRY, GENERATED_MERGE, INCONSISTENT, WRONG_STATUS})
"""A consumer with one of these has been ended: ending it again changes nothing."""


class ConsumerEnd(NamedTuple):
    """What a consumer's row says at its end; an empty sub-status leaves what it has."""

    status: JobStatus
    sub_status: str
    code: int


_ENDS: Final[Mapping[Verdict, ConsumerEnd]] = MappingProxyType(
    {
        V.RETRY: ConsumerEnd(JobStatus.MERGING, "es_retry", GENERATED_RETRY),
        V.MERGE: ConsumerEnd(JobStatus.MERGING, "es_merge", GENERATED_MERGE),
        V.MERGE_OF_OTHERS: ConsumerEnd(JobStatus.CLOSED, "es_merge", GENERATED_MERGE),
        V.WAIT: ConsumerEnd(JobStatus.MERGING, "es_wait", WAITS),
        V.DID_NOTHING: ConsumerEnd(JobStatus.CLOSED, "es_inaction", INACTION),
        V.LAST_FAILED: ConsumerEnd(JobStatus.FAILED, "", LAST_OF_ALL),
        V.ALL_FAILED: ConsumerEnd(JobStatus.FAILED, "", ALL_RANGES_FAILED),
        V.RETRY_WITHOUT_RESULT: ConsumerEnd(JobStatus.CLOSED, "es_noevent", NO_EVENT),
        V.UNREADABLE: ConsumerEnd(JobStatus.FAILED, "", INCONSISTENT),
        V.BAD_STATUS: ConsumerEnd(JobStatus.CLOSED, "es_badstatus", WRONG_STATUS),
    }
)
PARTIAL: Final = "partial"


def decide(facts: ConsumerFacts) -> Verdict:
    """What comes after the end of a consumer."""
    over = facts.nothing_left
    if not facts.left and facts.others:
        return V.WAIT if facts.done else V.DID_NOTHING
    if over and not facts.any_done:
        return V.ALL_FAILED
    out_of_attempts = facts.attempt >= facts.max_attempt and not over
    if out_of_attempts or (over and facts.hopeless and not facts.accepts_partial):
        return V.LAST_FAILED if facts.is_last else V.DID_NOTHING
    has_part = facts.from_jumbo or facts.done or facts.all_done_before or (facts.hopeless and facts.is_last)
    if over and not has_part:
        return V.DID_NOTHING
    if over:
        return V.MERGE if facts.done else V.MERGE_OF_OTHERS
    if facts.status in (JobStatus.DEFINED, JobStatus.PENDING, JobStatus.ASSIGNED):
        return V.BAD_STATUS
    return V.RETRY if facts.done else V.RETRY_WITHOUT_RESULT


def outcome(verdict: Verdict, facts: ConsumerFacts) -> ConsumerEnd | None:
    """What its row is to say; None leaves the job as it was reported."""
    if verdict is V.HARMLESS:
        return None
    end = _ENDS[verdict]
    if verdict in MERGES and facts.hopeless:
        return end._replace(sub_status=PARTIAL)
    return end


def nobody_goes_on(verdict: Verdict, *, made_job: bool, others_active: bool, uses_jumbo: bool) -> bool:
    """Whether the jobset would be left with nobody who processes it.

    It then gets a consumer that waits for jumbo jobs where `leaves_to_jumbo` says so, else the job fails with NOBODY_LEFT.
    """
    if made_job or others_active or verdict in MERGES:
        return False
    if verdict is V.WAIT:
        return uses_jumbo
    return verdict in RETRIES or verdict in (V.DID_NOTHING, V.BAD_STATUS)


def leaves_to_jumbo(verdict: Verdict, *, uses_jumbo: bool) -> bool:
    """Whether jumbo jobs can do the rest: a consumer that waits for them is made."""
    return uses_jumbo and verdict in (V.WAIT, V.DID_NOTHING)


NOBODY: Final = ConsumerEnd(JobStatus.FAILED, "", NOBODY_LEFT)
_BY_PILOT: Final = ("pilot_failed", "es_heartbeat")
_IDLE: Final = ("es_noevent", "es_inaction")


def with_earlier(end: ConsumerEnd, before: str, *, preemptable: bool, events: int, has_error: bool) -> ConsumerEnd:
    """The same after what the job's sub-status said `before` its end.

    `events` that the job has processed make a failure a wait, since they are merged. `has_error`: the job has an error
    code. At a preemptable queue a lost heartbeat is no failure.
    """
    if before in _BY_PILOT or (before == "pilot_killed" and end.sub_status in _IDLE):
        if preemptable and before != "pilot_failed":
            return end._replace(status=JobStatus.CLOSED, sub_status="es_preempted")
        return end._replace(status=JobStatus.FAILED, sub_status=before)
    if end.status in (JobStatus.FAILED, JobStatus.CLOSED) and end.code in (INACTION, LAST_OF_ALL) and events > 0:
        return end._replace(status=JobStatus.MERGING, sub_status=before if before == TOO_LONG else "es_wait")
    if before == TOO_LONG and end.sub_status in _IDLE:
        return end._replace(sub_status=before)
    idle = end.status is JobStatus.FAILED and end.code in (INACTION, LAST_OF_ALL)
    if idle and (before == "pilot_noevents" or not has_error):
        return end._replace(status=JobStatus.CLOSED, sub_status=before)
    return end
