"""Time-outs of jobs: one table, and what it says about one job. Pure.

Numbers are those of the two JEDI documents (the brokerage page is the newer one where they differ); what they do not
mention comes from the running system (lifecycle 7.3). The older page's six hours for activated evgen and simul jobs
by tier of site are in neither of the newer sources, and not here.

A time-out counts from one of the job's times. Jobs at a queue that is paused or does not allow reassignment have no
time-outs at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from types import MappingProxyType
from typing import Final, Literal

from tasks_app.domain import refusal_codes
from tasks_app.domain.killcodes import Kill
from tasks_app.domain.reasons import Reason
from tasks_app.domain.states import JOB_OPEN, JobStatus

URGENT: Final = 800
"""Priority from which a job is urgent."""
LOST_HEARTBEAT: Final = ("jobdispatcher", 100)
"""Component and code of the error of a job that fell silent."""
ANALYSIS_LABELS: Final = frozenset({"user", "panda"})
TESTED_LABELS: Final = frozenset({"managed", "test"})
LABELS_FOR_ALL: Final = ("user", "test")
"""Labels of tasks that everybody may submit; the others need the production right."""

QUEUE_ASLEEP: Final = timedelta(hours=2)
"""A queue that has started no job for this time is inactive."""
TASK_ASLEEP: Final = timedelta(hours=3)
"""A task of which no job has started or ended at a queue for this time gets nothing done there."""

Moment = Literal["created", "status", "heartbeat"]


class Labels(Enum):
    """Classes of prodSourceLabel."""

    ANY = "any label"
    PRODUCTION = "managed and test"
    OTHER = "any label but managed and test"
    ANALYSIS = "user and panda"
    NOT_ANALYSIS = "any label but user and panda"


class Priority(Enum):
    ANY = "any priority"
    URGENT = "priority from 800"
    NORMAL = "priority below 800"


@dataclass(frozen=True, slots=True)
class QueueView:
    """The queue of a job. `last_start` is when any job started there last, None if unknown.

    silent     jobs have waited there for minutes, no pilot asks for one, and pilots of other queues do
    transfer_high_days, transfer_low_days   its own limits for urgent and other transferring jobs; None is the default
    """

    name: str = ""
    status: str = "online"
    no_reassign: bool = False
    last_start: datetime | None = None
    transfer_high_days: float | None = None
    transfer_low_days: float | None = None
    silent: bool = False

    @property
    def closed(self) -> bool:
        return self.status in ("offline", "test")


@dataclass(frozen=True, slots=True)
class JobView:
    """One job that has not ended.

    status_since       last change of its status; `heartbeat_at` the last sign of its pilot, None before the first
    build              a build job, or one that belongs to no task
    event_service      an event-service job, a merge job of events included in `merge`
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
    RECHECK = "look at the transfer again"


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


def _task_asleep(job: JobView, now: datetime) -> bool:
    return job.task_active_at is None or now - job.task_active_at >= TASK_ASLEEP


J, H, D = JobStatus, timedelta(hours=1), timedelta(days=1)
_DEFINED = frozenset({J.PENDING, J.WAITING, J.DEFINED, J.ASSIGNED})
_QUEUED = frozenset({J.DEFINED, J.ASSIGNED, J.ACTIVATED, J.STARTING})
_ACTIVE = JOB_OPEN - _DEFINED
_WAITED, _SILENT = refusal_codes.JOB_WAITED_TOO_LONG, refusal_codes.JOB_LOST_HEARTBEAT


def _kill(
    name: str,
    statuses: frozenset[JobStatus] | JobStatus,
    labels: Labels,
    since: Moment,
    limit: timedelta,
    kill: Kill,
    sentence: str,
    code: str = _WAITED,
    also: Condition | None = None,
    priority: Priority = Priority.ANY,
    vary: Vary | None = None,
) -> TimeoutRule:
    return TimeoutRule(name, _set(statuses), labels, priority, since, limit, Do.KILL, code, sentence, kill, also, vary)


def _fail(
    name: str,
    statuses: frozenset[JobStatus] | JobStatus,
    labels: Labels,
    since: Moment,
    limit: timedelta,
    sentence: str,
    code: str = _SILENT,
    also: Condition | None = None,
    priority: Priority = Priority.ANY,
    vary: Vary | None = None,
) -> TimeoutRule:
    return TimeoutRule(name, _set(statuses), labels, priority, since, limit, Do.FAIL, code, sentence, None, also, vary)


def _set(statuses: frozenset[JobStatus] | JobStatus) -> frozenset[JobStatus]:
    return frozenset({statuses}) if isinstance(statuses, JobStatus) else statuses


_OUT = "{status} for more than {limit}"
_QUIET = "no heartbeat of the {status} job since {since} UTC, {limit} are the limit"
_HELD = "its end could not be booked within {limit}"
_STUCK = "outputs did not arrive within {limit}"

TIMEOUTS: Final[tuple[TimeoutRule, ...]] = (
    _kill(
        "orphan_merge",
        JOB_OPEN,
        Labels.ANY,
        "created",
        H / 2,
        Kill.JEDI_FORCE,
        "nothing waits for this merge job any more",
        refusal_codes.JOB_NO_PARENT,
        lambda job, now: job.orphan_merge,
    ),
    _kill("pending", J.PENDING, Labels.ANY, "created", H, Kill.EXPIRED_WAITING, _OUT),
    _kill("waiting", J.WAITING, Labels.ANY, "created", H / 2, Kill.EXPIRED_WAITING, _OUT),
    _kill("build_defined", J.DEFINED, Labels.ANY, "status", 4 * H, Kill.EXPIRED, _OUT, also=lambda job, now: job.build),
    _kill("defined", J.DEFINED, Labels.PRODUCTION, "status", 4 * H, Kill.REASSIGN, _OUT),
    _kill("assigned", J.ASSIGNED, Labels.PRODUCTION, "status", 12 * H, Kill.REASSIGN, _OUT),
    _kill(
        "urgent_inactive",
        frozenset({J.ACTIVATED, J.STARTING}),
        Labels.NOT_ANALYSIS,
        "status",
        4 * H,
        Kill.REASSIGN,
        "{status} for more than {limit} at a queue ({queue}) that starts no jobs",
        refusal_codes.JOB_QUEUE_INACTIVE,
        _queue_asleep,
        Priority.URGENT,
    ),
    _kill(
        "analysis_closed",
        _QUEUED,
        Labels.ANALYSIS,
        "created",
        timedelta(0),
        Kill.REASSIGN,
        "the queue ({queue}) is {queue_status}",
        refusal_codes.JOB_QUEUE_INACTIVE,
        lambda job, now: job.queue.closed and not job.build,
    ),
    _kill(
        "analysis",
        _QUEUED,
        Labels.ANALYSIS,
        "created",
        12 * H,
        Kill.REASSIGN,
        "not started within {limit}, and no job of the task started or ended at the queue ({queue}) for 3 h",
        also=lambda job, now: not job.build and _task_asleep(job, now),
        vary=_by_group,
    ),
    _kill(
        "silent_queue",
        J.ACTIVATED,
        Labels.ANY,
        "status",
        H / 6,
        Kill.REASSIGN,
        "activated for more than {limit} at a queue ({queue}) whose pilots have stopped asking for jobs",
        refusal_codes.JOB_QUEUE_INACTIVE,
        lambda job, now: job.queue.silent and not (job.bound or job.build or job.merge),
    ),
    _kill("activated", frozenset({J.ACTIVATED, J.STARTING}), Labels.PRODUCTION, "status", 2 * D, Kill.REASSIGN, _OUT),
    _kill("throttled", J.THROTTLED, Labels.ANY, "status", 7 * D, Kill.EXPIRED, _OUT),
    _fail("sent", J.SENT, Labels.ANY, "heartbeat", H / 2, _QUIET),
    _kill(
        "events",
        frozenset({J.STARTING, J.RUNNING}),
        Labels.ANY,
        "status",
        D,
        Kill.EXPIRED,
        _OUT,
        refusal_codes.JOB_RAN_TOO_LONG,
        lambda job, now: job.event_service and (job.merge or job.priority >= 900),
    ),
    _kill("running", J.RUNNING, Labels.ANY, "status", 21 * D, Kill.EXPIRED, _OUT, refusal_codes.JOB_RAN_TOO_LONG),
    _fail(
        "heartbeat",
        frozenset({J.STARTING, J.RUNNING}),
        Labels.ANY,
        "heartbeat",
        2 * H,
        _QUIET,
        vary=_by_workflow("heartbeat"),
    ),
    _fail(
        "holding_analysis",
        J.HOLDING,
        Labels.ANALYSIS,
        "status",
        3 * H,
        _HELD,
        refusal_codes.JOB_NOT_BOOKED,
        lambda job, now: not job.report_waits,
    ),
    _fail(
        "holding_urgent",
        J.HOLDING,
        Labels.NOT_ANALYSIS,
        "status",
        3 * H,
        _HELD,
        refusal_codes.JOB_NOT_BOOKED,
        None,
        Priority.URGENT,
    ),
    _fail("holding", J.HOLDING, Labels.NOT_ANALYSIS, "status", 48 * H, _HELD, refusal_codes.JOB_NOT_BOOKED),
    _fail(
        "own_transfer",
        J.TRANSFERRING,
        Labels.ANY,
        "heartbeat",
        2 * H,
        _QUIET,
        also=lambda job, now: job.own_stage_out,
        vary=_by_workflow("own_transfer"),
    ),
    _fail(
        "transferring_urgent",
        J.TRANSFERRING,
        Labels.NOT_ANALYSIS,
        "status",
        2 * D,
        _STUCK,
        refusal_codes.JOB_TRANSFER_TOO_LONG,
        None,
        Priority.URGENT,
        _transfer,
    ),
    _fail(
        "transferring",
        J.TRANSFERRING,
        Labels.ANY,
        "status",
        6 * D,
        _STUCK,
        refusal_codes.JOB_TRANSFER_TOO_LONG,
        lambda job, now: not _urgent_transfer(job),
        vary=_transfer,
    ),
    TimeoutRule(
        "transfer_check",
        frozenset({J.TRANSFERRING}),
        Labels.ANALYSIS,
        Priority.ANY,
        "heartbeat",
        2 * H,
        Do.RECHECK,
        refusal_codes.JOB_TRANSFER_UNCHECKED,
        "no news of its outputs for {limit}",
    ),
    _kill("before_activation", _DEFINED, Labels.ANY, "created", 7 * D, Kill.EXPIRED, _OUT),
    _kill("activated_others", J.ACTIVATED, Labels.OTHER, "status", 7 * D, Kill.EXPIRED, _OUT),
    _kill(
        "active_analysis",
        _ACTIVE - {J.MERGING},
        Labels.ANALYSIS,
        "created",
        7 * D,
        Kill.EXPIRED,
        "not ended within {limit} after it was made",
        refusal_codes.JOB_RAN_TOO_LONG,
    ),
)
"""All time-outs; of those that are over, the first one counts."""


def timeout_of(job: JobView, now: datetime, settings: TimeoutSettings | None = None) -> JobTimeout | None:
    """What is to be done with a job now, or None."""
    if job.queue.no_reassign or job.queue.status == "paused":
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
