"""The end of a consumer: its ranges are decided, and another job goes on with the jobset, or the jobset ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from events_app.consumers.copying import CopyKind, JobCopy, Place, hand_over
from events_app.ends import jobset_lines, merge_making
from events_app.ends.jobset_facts import AtQueue, Rules, commonest_error, files_of
from events_app.ends.jobset_turn import Turn
from events_app.lifecycle import jobset_ranges
from events_app.lifecycle.range_ends import Ended, Left, end_consumer, what_is_left
from events_app.rules.consumer_ends import (
    INACTION,
    MERGES,
    NOBODY,
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
from events_app.rules.event_jobs import EventJobKind
from jedisite.vocabulary.words import plural
from tasks_app.domain.job_timeouts import LOST_HEARTBEAT
from tasks_app.domain.jumbo_use import WAITING_QUEUE
from tasks_app.domain.range_jobs import TOO_LONG
from tasks_app.domain.states import JobStatus
from tasks_app.models.dataset import LOG_TYPES
from tasks_app.outcomes.end_hooks import Ending, EventJob
from tasks_app.outcomes.job_outcome import Outcome

ALL_DONE_BEFORE: Final = "at"
"""The word of special handling of a consumer whose ranges were done before it began (allOkEvents)."""
NOT_NEEDED: Final = ConsumerEnd(JobStatus.CLOSED, "es_inaction", INACTION)
"""Of a consumer whose jobset has ended, or is merged already."""


def end(turn: Turn, ending: Ending) -> Outcome:
    """End a consumer that was not killed, and let its jobset go on, or end. Returns what becomes of the job."""
    said, job = ending
    rules = turn.rules[job.task_id]
    files = files_of(turn.cursor, job.task_id, job.job_id)
    ids = [file.file_id for file in files]
    ended = end_consumer(
        turn.cursor,
        job.task_id,
        job.job_id,
        only_failed_count=rules.only_failed_count,
        waited_for_jumbo=ids if rules.uses_jumbo or job.event_service == EventJobKind.CO_JUMBO else (),
    )
    members = [
        member for member in turn.members(job.jobset_id) if member.job_id != job.job_id and member.may_have_files
    ]
    if not {file.owner for file in files} & {job.job_id, *(member.job_id for member in members)}:
        return told(said, job, NOT_NEEDED, "nothing was left for it to process")
    others = [member.job_id for member in members if member.is_active]
    theirs = [job.job_id, *(member.job_id for member in members)]
    left = what_is_left(turn.cursor, job.task_id, job.jobset_id, ids, accepts_partial=rules.accepts_partial)
    facts = facts_of(job, ended, left, rules, is_last=not others)
    verdict = decide(facts)
    lost = jobset_ranges.corrupt_what_lies_nowhere(turn.cursor, job.task_id, ids) if verdict in MERGES else 0
    if lost:
        verdict = Verdict.UNREADABLE
    follows = _follow(turn, job, verdict, ids, theirs)
    became = outcome(verdict, facts)
    assert became is not None
    has_next, uses_jumbo = follows is not None, rules.uses_jumbo
    if nobody_goes_on(verdict, made_job=has_next, others_active=bool(others), uses_jumbo=uses_jumbo):
        if leaves_to_jumbo(verdict, uses_jumbo=uses_jumbo):
            follows = _wait(turn, job, theirs)
        else:
            became = NOBODY
    if became.status == JobStatus.FAILED:
        if not said.component and not job.has_error:
            said = replace(said, cause=commonest_error(turn.cursor, job.task_id, ids))
        _fail_jobset(turn, job, ids, theirs, rules)
    elif follows is None and members:
        hand_over(turn.cursor, job.task_id, theirs, (others or theirs[1:])[0])
    sentence = _nowhere(lost) if lost else _sentence(verdict, became, facts, follows)
    return told(said, job, _as_before(said, job, became, facts, turn.queues.get(job.site, AtQueue())), sentence)


def facts_of(job: EventJob, ended: Ended, left: Left, rules: Rules, *, is_last: bool) -> ConsumerFacts:
    """A consumer at its end, as the decision wants it."""
    return ConsumerFacts(
        done=ended.done,
        from_jumbo=ended.from_jumbo,
        left=left.ready,
        others=left.others,
        any_done=left.any_done,
        hopeless=left.hopeless,
        attempt=job.attempt,
        max_attempt=job.max_attempt,
        is_last=is_last,
        status=JobStatus(job.status),
        # What jumbo jobs have done may have been counted at the end of another consumer.
        all_done_before=ALL_DONE_BEFORE in job.special_handling.split(",") or (rules.uses_jumbo and is_last),
        accepts_partial=rules.accepts_partial,
    )


def _follow(turn: Turn, job: EventJob, verdict: Verdict, files: list[int], theirs: Sequence[int]) -> int | None:
    """Make the job that goes on, if the verdict asks for one and the queue takes it. It gets what these jobs have."""
    if verdict in RETRIES and turn.queues.get(job.site, AtQueue()).takes_more:
        new = turn.copy(
            job.task_id, JobCopy(job.job_id, CopyKind.RETRY), f"it goes on with the ranges of job {job.job_id}"
        )
        hand_over(turn.cursor, job.task_id, theirs, new)
        return new
    if verdict not in MERGES:
        return None
    copy = merge_making.merge_copy(turn.cursor, job, theirs, files)
    new = turn.copy(job.task_id, copy, f"all ranges of jobset {job.jobset_id} are decided")
    hand_over(turn.cursor, job.task_id, theirs, new)
    merge_making.begin(turn.cursor, job, new, files)
    turn.tell(job.task_id, theirs[1:], jobset_lines.UNUSED, new)
    return new


def _wait(turn: Turn, job: EventJob, theirs: Sequence[int]) -> int:
    """Make a consumer that has the files until jumbo jobs have done their ranges."""
    copy = JobCopy(job.job_id, CopyKind.CONSUMER, Place(WAITING_QUEUE, None, None, None, None))
    new = turn.copy(job.task_id, copy, "jumbo jobs process the rest of its ranges")
    hand_over(turn.cursor, job.task_id, theirs, new)
    return new


def _fail_jobset(turn: Turn, job: EventJob, files: list[int], theirs: Sequence[int], rules: Rules) -> None:
    """The jobset ends with this job: its files come back by the end of that. Without notDiscardEvents what was processed
    is thrown away, and so are the jobs that wait for its merge."""
    hand_over(turn.cursor, job.task_id, theirs, job.job_id)
    turn.tell(job.task_id, theirs[1:], jobset_lines.ABORTED, job.job_id)
    if not rules.keeps_events:
        jobset_ranges.end_jobset(turn.cursor, job.task_id, job.jobset_id, files, keeps_events=False)
        turn.tell_merging(job.task_id, job.jobset_id, (), jobset_lines.FAILED_WITH, job.job_id)


def _as_before(said: Outcome, job: EventJob, became: ConsumerEnd, facts: ConsumerFacts, queue: AtQueue) -> ConsumerEnd:
    """The same after what is known of the job since before its end: what its pilot said, or that it was silent.

    That a jobset fails for good is no wait, whatever the job has processed.
    """
    lost = (said.component, said.code) == LOST_HEARTBEAT and not facts.done
    before = TOO_LONG if said.sub_status == TOO_LONG else job.sub_status
    return with_earlier(
        became,
        "es_heartbeat" if lost else before,
        preemptable=queue.preemptable,
        events=facts.done if became.code == INACTION else 0,
        has_error=job.has_error or bool(said.component) or bool(facts.hopeless),
    )


def told(said: Outcome, job: EventJob, became: ConsumerEnd, sentence: str) -> Outcome:
    """What was reported of a job's end, with what the end becomes. Of what it stored only logs count."""
    own = bool(said.component)
    return replace(
        said,
        status=became.status,
        sub_status=became.sub_status or None,
        component=said.component if own else "taskbuffer",
        code=said.code if own else became.code,
        diag=said.diag or sentence,
        stored=tuple(pair for pair in said.stored if pair[0].type in LOG_TYPES),
        has_files=became.status != JobStatus.MERGING,
    )


def _nowhere(ranges: int) -> str:
    said = plural(ranges, "range was", "ranges were")
    return f"nothing can be merged: {said} reported as finished without a file and without a storage"


def _sentence(verdict: Verdict, became: ConsumerEnd, facts: ConsumerFacts, follows: int | None) -> str:
    if became is NOBODY and not facts.left:
        return "it processed nothing, and no other job goes on"
    if became is NOBODY:
        return f"{plural(facts.left, 'range is', 'ranges are')} left, and its queue takes no more jobs of event service"
    if verdict in RETRIES:
        return f"job {follows} goes on with {plural(facts.left, 'range')}"
    if verdict in MERGES:
        return f"all ranges are decided: job {follows} merges them"
    if verdict is Verdict.WAIT:
        return "other jobs still process ranges of its files"
    if verdict is Verdict.ALL_FAILED:
        return "no range of its files could be processed"
    if verdict is Verdict.LAST_FAILED:
        if facts.hopeless:
            return f"{plural(facts.hopeless, 'range has', 'ranges have')} no attempt left"
        return f"{plural(facts.left, 'range is', 'ranges are')} left after the last of {plural(facts.max_attempt, 'attempt')}"
    return "it processed nothing, and other jobs go on"
