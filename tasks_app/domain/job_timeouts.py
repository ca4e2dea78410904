"""Time-outs of jobs: one table, and what it says about one job. Pure.

Numbers are those of the two JEDI documents (the brokerage page is the newer one where they differ); what they do not
mention comes from the running system (lifecycle 7.3). The older page's six hours for activated evgen and simul jobs
hold at queues that start none, whatever their tier. A time-out counts from one of the job's times. Jobs at a queue
that is paused or does not allow reassignment have no time-outs at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from types import MappingProxyType
from typing import Final, Literal

from tasks_app.domain import job_refusal_codes as codes
from tasks_app.domain.killcodes import Kill
from tasks_app.domain.reasons import Reason
from tasks_app.domain.source_labels import ANALYSIS_LABELS, TESTED_LABELS, Labels
from tasks_app.domain.states import JOB_OPEN, JobStatus

URGENT: Final = 800
"""Priority from which a job is urgent."""
URGENT_EVENTS: Final = 900
"""The same of a job of events."""
LOST_HEARTBEAT: Final = ("jobdispatcher", 100)
"""Component and code of the error of a job that fell silent."""

QUEUE_ASLEEP: Final = timedelta(hours=2)
"""A queue that has started no job for this time is inactive."""
TASK_ASLEEP: Final = timedelta(hours=3)
"""A task of which no job has started or ended at a queue for this time gets nothing done there."""

LIGHT_PROCESSING: Final = frozenset({"evgen", "simul"})
"""Processing types of production whose jobs read little or nothing."""

Moment = Literal["created", "status", "heartbeat"]


class Priority(Enum):
    ANY = "any priority"
    URGENT = "priority from 800"
    NORMAL = "priority below 800"


@dataclass(frozen=True, slots=True)
class QueueView:
    """The queue of a job. `last_start` is when any job started there last, None if unknown.

    silent     jobs have waited there for minutes, no pilot asks for one, and pilots of other queues do
    no_channel payloads of its pilots cannot reach their channel for ranges of events
    transfer_high_days, transfer_low_days   its own limits for urgent and other transferring jobs; None is the default
    """

    name: str = ""
    status: str = "online"
    no_reassign: bool = False
    last_start: datetime | None = None
    transfer_high_days: float | None = None
    transfer_low_days: float | None = None
    silent: bool = False
    no_channel: bool = False

    @property
    def closed(self) -> bool:
        return self.status in ("offline", "test")

    @property
    def is_exempt(self) -> bool:
        return self.no_reassign or self.status == "paused"


@dataclass(frozen=True, slots=True)
class JobView:
    """One job that has not ended.

    status_since       last change of its status; `heartbeat_at` the last sign of its pilot, None before the first
    build              a build job, or one that belongs to no task
    event_service      it takes ranges of events or merges their outputs; `jumbo`: of all its task; `by_channel`: by its pilot
    orphan_merge       a merge job none of whose unmerged jobs still waits for it
    report_waits       a final report of its pilot has not been booked yet
    own_stage_out      it moves its outputs itself (jobSubStatus is set while transferring)
    task_active_at     last start or end of a job of the same task at the same queue
    stays              its task forbids that jobs are assigned anew (DI)
    bound              it could be made anew at the same queue only, or was once already
    told               its pilot was told to stop, so that only silence or the time of booking counts
    """

    job_id: int
    status: JobStatus
    created: datetime
    status_since: datetime
    heartbeat_at: datetime | None = None
    label: str = "managed"
    priority: int = 0
    workflow: str = ""
    queue: QueueView = field(default_factory=QueueView)
    build: bool = False
    merge: bool = False
    event_service: bool = False
    orphan_merge: bool = False
    report_waits: bool = False
    own_stage_out: bool = False
    task_active_at: datetime | None = None
    stays: bool = False
    bound: bool = False
    told: bool = False
    working_group: str = ""
    processing_type: str = ""
    jumbo: bool = False
    by_channel: bool = False


@dataclass(frozen=True, slots=True)
class TimeoutSettings:
    """Limits that an installation may set.

    limits   by the name of the rule, in the place of the rule's own
    by       by the name of the rule, then by what the limit differs by: HEARTBEAT_TIMEOUT_<workflow> (production and
             analysis are those of jobs whose workflow has none), ANALY_TIMEOUT_<working group>
    """

    limits: Mapping[str, timedelta] = field(default_factory=lambda: MappingProxyType({}))
    by: Mapping[str, Mapping[str, timedelta]] = field(default_factory=lambda: MappingProxyType({}))


class Do(Enum):
    KILL = "kill with a code"
    FAIL = "fail with an error"
    RECHECK = "check the transfer again"


Vary = Callable[[JobView, TimeoutSettings, timedelta], timedelta]
Condition = Callable[[JobView, datetime], bool]


@dataclass(frozen=True, slots=True)
class TimeoutRule:
    """One row of the table. `sentence` gets `{limit}` and `{since}`; `also` is a further condition on job and time;
    `vary` changes the limit for one job."""

    name: str
    statuses: frozenset[JobStatus]
    labels: Labels
    priority: Priority
    since: Moment
    limit: timedelta
    do: Do
    code: str
    sentence: str
    kill: Kill | None = None
    also: Condition | None = None
    vary: Vary | None = None


@dataclass(frozen=True, slots=True)
class JobTimeout:
    """What to do with a job: kill it with `kill`, fail it with `error` (component, code), or look at it again."""

    job_id: int
    rule: str
    do: Do
    reason: Reason
    kill: Kill | None = None
    error: tuple[str, int] | None = None


def _by_workflow(rule: str) -> Vary:
    def vary(job: JobView, settings: TimeoutSettings, limit: timedelta) -> timedelta:
        by = settings.by.get(rule, {})
        return by.get(job.workflow, by.get("analysis" if job.label in ANALYSIS_LABELS else "production", limit))

    return vary


def _by_group(job: JobView, settings: TimeoutSettings, limit: timedelta) -> timedelta:
    return settings.by.get("analysis", {}).get(job.working_group, limit)


def _urgent_transfer(job: JobView) -> bool:
    return job.priority >= URGENT and job.label not in ANALYSIS_LABELS


def _transfer(job: JobView, settings: TimeoutSettings, limit: timedelta) -> timedelta:
    """The limit of the queue, if it has one."""
    days = job.queue.transfer_high_days if _urgent_transfer(job) else job.queue.transfer_low_days
    return timedelta(days=days) if days is not None and days > 0 else limit


def _queue_asleep(job: JobView, now: datetime) -> bool:
    started = job.queue.last_start
    return job.queue.closed or (started is not None and now - started >= QUEUE_ASLEEP)


def _could_run_anywhere(job: JobView, now: datetime) -> bool:
    """Jobs that read little wait no longer than others at a queue that starts none: any other queue may have them."""
    return job.processing_type in LIGHT_PROCESSING and _queue_asleep(job, now)


def _is_orphan(job: JobView, now: datetime) -> bool:
    return job.orphan_merge


def _builds(job: JobView, now: datetime) -> bool:
    return job.build


def _at_closed_queue(job: JobView, now: datetime) -> bool:
    return job.queue.closed and not job.build


def _gets_nothing(job: JobView, now: datetime) -> bool:
    """Its task gets nothing done at the queue."""
    asleep = job.task_active_at is None or now - job.task_active_at >= TASK_ASLEEP
    return asleep and not job.build


def _may_leave_silent_queue(job: JobView, now: datetime) -> bool:
    return job.queue.silent and not (job.bound or job.build or job.merge)


def _gets_no_range(job: JobView, now: datetime) -> bool:
    return job.by_channel and job.queue.no_channel


def _urgent_events(job: JobView, now: datetime) -> bool:
    return job.event_service and not job.jumbo and (job.merge or job.priority >= URGENT_EVENTS)


def _has_no_report(job: JobView, now: datetime) -> bool:
    return not job.report_waits


def _waits_for_no_jumbo(job: JobView, now: datetime) -> bool:
    return not job.event_service


def _moves_outputs(job: JobView, now: datetime) -> bool:
    return job.own_stage_out


def _transfers_in_turn(job: JobView, now: datetime) -> bool:
    return not _urgent_transfer(job)


J, H, D = JobStatus, timedelta(hours=1), timedelta(days=1)
_ANY, _PROD, _ANALY, _NOT_ANALY = Labels.ANY, Labels.PRODUCTION, Labels.ANALYSIS, Labels.NOT_ANALYSIS
_URGENT: Final = Priority.URGENT
_STARTED, _RUNNING = frozenset({J.ACTIVATED, J.STARTING}), frozenset({J.STARTING, J.RUNNING})
_DEFINED = frozenset({J.PENDING, J.WAITING, J.DEFINED, J.ASSIGNED})
_QUEUED = frozenset({J.DEFINED, J.ASSIGNED, J.ACTIVATED, J.STARTING})
_ACTIVE, _MOVING, _OF_WORKFLOW = JOB_OPEN - _DEFINED, J.TRANSFERRING, _by_workflow("own_transfer")


def _row(
    name: str,
    statuses: frozenset[JobStatus] | JobStatus,
    labels: Labels,
    since: Moment,
    limit: timedelta,
    end: Kill | Do,
    sentence: str,
    code: str = "",
    also: Condition | None = None,
    priority: Priority = Priority.ANY,
    vary: Vary | None = None,
) -> TimeoutRule:
    """`end` is a kill code, or what else is done; without a code, a killed job waited too long and a failed one fell silent."""
    states = frozenset({statuses}) if isinstance(statuses, JobStatus) else statuses
    do, kill = (Do.KILL, end) if isinstance(end, Kill) else (end, None)
    code = code or (codes.JOB_WAITED_TOO_LONG if kill else codes.JOB_LOST_HEARTBEAT)
    return TimeoutRule(name, states, labels, priority, since, limit, do, code, sentence, kill, also, vary)


_OUT = "{status} for more than {limit}"
_QUIET = "no heartbeat of the {status} job since {since} UTC, the limit is {limit}"
_HELD = "its end could not be recorded within {limit}"
_STUCK = "outputs did not arrive within {limit}"
_ORPHAN = "nothing waits for this merge job any more"
_NO_START = "{status} for more than {limit} at a queue ({queue}) that starts no jobs"
_CLOSED = "the queue ({queue}) is {queue_status}"
_NOT_STARTED = "not started within {limit}, and no job of the task started or ended at the queue ({queue}) for 3 h"
_NOT_FETCHED = "activated for more than {limit} at a queue ({queue}) whose pilots have stopped asking for jobs"
_NO_CHANNEL = "activated for more than {limit} at a queue ({queue}) whose pilots give no ranges of events by now"
_NOT_ENDED = "not ended within {limit} after it was made"
_NO_NEWS = "no news of its outputs for {limit}"

EXPIRED, REASSIGN, FAIL = Kill.EXPIRED, Kill.REASSIGN, Do.FAIL
INACTIVE, TOO_LONG = codes.JOB_QUEUE_INACTIVE, codes.JOB_RAN_TOO_LONG
UNBOOKED, NOT_ARRIVED = codes.JOB_NOT_BOOKED, codes.JOB_TRANSFER_TOO_LONG

TIMEOUTS: Final[tuple[TimeoutRule, ...]] = (
    _row("orphan_merge", JOB_OPEN, _ANY, "created", H / 2, Kill.JEDI_FORCE, _ORPHAN, codes.JOB_NO_PARENT, _is_orphan),
    _row("pending", J.PENDING, _ANY, "created", H, Kill.EXPIRED_WAITING, _OUT),
    _row("waiting", J.WAITING, _ANY, "created", H / 2, Kill.EXPIRED_WAITING, _OUT, also=_waits_for_no_jumbo),
    _row("build_defined", J.DEFINED, _ANY, "status", 4 * H, EXPIRED, _OUT, also=_builds),
    _row("defined", J.DEFINED, _PROD, "status", 4 * H, REASSIGN, _OUT),
    _row("assigned", J.ASSIGNED, _PROD, "status", 12 * H, REASSIGN, _OUT),
    _row(
        "urgent_inactive", _STARTED, _NOT_ANALY, "status", 4 * H, REASSIGN, _NO_START, INACTIVE, _queue_asleep, _URGENT
    ),
    _row("light_inactive", J.ACTIVATED, _PROD, "status", 6 * H, REASSIGN, _NO_START, INACTIVE, _could_run_anywhere),
    _row("analysis_closed", _QUEUED, _ANALY, "created", 0 * H, REASSIGN, _CLOSED, INACTIVE, _at_closed_queue),
    _row("analysis", _QUEUED, _ANALY, "created", 12 * H, REASSIGN, _NOT_STARTED, also=_gets_nothing, vary=_by_group),
    _row("silent_queue", J.ACTIVATED, _ANY, "status", H / 6, REASSIGN, _NOT_FETCHED, INACTIVE, _may_leave_silent_queue),
    _row("no_channel", J.ACTIVATED, _ANY, "status", H / 6, REASSIGN, _NO_CHANNEL, INACTIVE, _gets_no_range),
    _row("activated", _STARTED, _PROD, "status", 2 * D, REASSIGN, _OUT),
    _row("throttled", J.THROTTLED, _ANY, "status", 7 * D, EXPIRED, _OUT),
    _row("sent", J.SENT, _ANY, "heartbeat", H / 2, FAIL, _QUIET),
    _row("events", _RUNNING, _ANY, "status", D, EXPIRED, _OUT, TOO_LONG, _urgent_events),
    _row("running", J.RUNNING, _ANY, "status", 21 * D, EXPIRED, _OUT, TOO_LONG),
    _row("heartbeat", _RUNNING, _ANY, "heartbeat", 2 * H, FAIL, _QUIET, vary=_by_workflow("heartbeat")),
    _row("holding_analysis", J.HOLDING, _ANALY, "status", 3 * H, FAIL, _HELD, UNBOOKED, _has_no_report),
    _row("holding_urgent", J.HOLDING, _NOT_ANALY, "status", 3 * H, FAIL, _HELD, UNBOOKED, priority=_URGENT),
    _row("holding", J.HOLDING, _NOT_ANALY, "status", 48 * H, FAIL, _HELD, UNBOOKED),
    _row("own_transfer", _MOVING, _ANY, "heartbeat", 2 * H, FAIL, _QUIET, also=_moves_outputs, vary=_OF_WORKFLOW),
    _row(
        "transferring_urgent", _MOVING, _NOT_ANALY, "status", 2 * D, FAIL, _STUCK, NOT_ARRIVED, None, _URGENT, _transfer
    ),
    _row("transferring", _MOVING, _ANY, "status", 6 * D, FAIL, _STUCK, NOT_ARRIVED, _transfers_in_turn, vary=_transfer),
    _row("transfer_check", _MOVING, _ANALY, "heartbeat", 2 * H, Do.RECHECK, _NO_NEWS, codes.JOB_TRANSFER_UNCHECKED),
    _row("before_activation", _DEFINED, _ANY, "created", 7 * D, EXPIRED, _OUT),
    _row("activated_others", J.ACTIVATED, Labels.OTHER, "status", 7 * D, EXPIRED, _OUT),
    _row("active_analysis", _ACTIVE - {J.MERGING}, _ANALY, "created", 7 * D, EXPIRED, _NOT_ENDED, TOO_LONG),
)
"""All time-outs; of those that are over, the first one counts."""
SILENCE: Final = frozenset({"sent", "heartbeat"})
"""The time-outs after which a job at a pilot counts as lost."""


def silence(job: JobView, settings: TimeoutSettings) -> tuple[datetime, timedelta] | None:
    """Since when the pilot of a job is silent, and how long it may be; None when no such time-out concerns the job."""
    if job.queue.is_exempt:
        return None
    rules = (rule for rule in TIMEOUTS if rule.name in SILENCE and _concerns(rule, job))
    return next(((_moment(rule.since, job), limit_of(rule, job, settings)) for rule in rules), None)


def timeout_of(job: JobView, now: datetime, settings: TimeoutSettings | None = None) -> JobTimeout | None:
    """What is to be done with a job now, or None."""
    if job.queue.is_exempt:
        return None
    settings = settings or TimeoutSettings()
    for rule in TIMEOUTS:
        if not _concerns(rule, job) or (rule.also is not None and not rule.also(job, now)):
            continue
        if rule.do == Do.KILL and (job.told or (job.stays and rule.kill == Kill.REASSIGN)):
            continue
        since, limit = _moment(rule.since, job), limit_of(rule, job, settings)
        if now - since >= limit:
            words = rule.sentence.format(
                limit=_words(limit),
                since=f"{since:%Y-%m-%d %H:%M:%S}",
                status=job.status,
                queue=job.queue.name or "?",
                queue_status=job.queue.status,
            )
            error = LOST_HEARTBEAT if rule.do == Do.FAIL else None
            return JobTimeout(job.job_id, rule.name, rule.do, Reason(rule.code, words), rule.kill, error)
    return None


def limit_of(rule: TimeoutRule, job: JobView, settings: TimeoutSettings) -> timedelta:
    """The limit of a rule for one job."""
    limit = settings.limits.get(rule.name, rule.limit)
    return rule.vary(job, settings, limit) if rule.vary else limit


def _concerns(rule: TimeoutRule, job: JobView) -> bool:
    if job.status not in rule.statuses:
        return False
    if rule.priority != Priority.ANY and (job.priority >= URGENT) != (rule.priority == Priority.URGENT):
        return False
    analysis, tested = job.label in ANALYSIS_LABELS, job.label in TESTED_LABELS
    return {
        Labels.ANY: True,
        Labels.PRODUCTION: tested,
        Labels.OTHER: not tested,
        Labels.ANALYSIS: analysis,
        Labels.NOT_ANALYSIS: not analysis,
    }[rule.labels]


def _moment(moment: Moment, job: JobView) -> datetime:
    if moment == "created":
        return job.created
    if moment == "heartbeat" and job.heartbeat_at is not None:
        return max(job.heartbeat_at, job.status_since) if job.status == J.SENT else job.heartbeat_at
    return job.status_since


def _words(limit: timedelta) -> str:
    minutes = limit / timedelta(minutes=1)
    if minutes < 60:
        return f"{minutes:g} min"
    return f"{minutes / 60:g} h" if minutes <= 48 * 60 else f"{minutes / 1440:g} days"
