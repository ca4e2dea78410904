"""The one table of time-outs: of tasks, jobs, datasets, locks and records. Watchdogs take their limits from here only.

Each row says what it concerns, from when it counts, its limit and what happens then, and where it comes from: T is the
JEDI document, B the brokerage page, S the running system (lifecycle).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Final, Literal

from brokerage_app.policy import filling
from tasks_app.domain import throttling
from tasks_app.domain.job_timeouts import SILENCE, TIMEOUTS, Do, Priority, TimeoutRule
from tasks_app.domain.killcodes import kill_code
from tasks_app.domain.range_jobs import TOO_LONG
from tasks_app.domain.source_labels import Labels

Thing = Literal["task", "job", "dataset", "lock", "record"]
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Timeout:
    """One row.

    name       thing and a short name, such as `job.sent`
    states     the states in which it counts; empty is any
    condition  what else must be true, and from when it counts, in words
    default    the limit of the documents
    effect     what happens when it is over
    source     T (JEDI document), B (brokerage page) or S (running system), with the section
    agent      the watchdog that acts
    setting    the environment variable that sets the limit, if there is one, and what it counts
    """

    name: str
    thing: Thing
    states: tuple[str, ...]
    condition: str
    default: timedelta
    effect: str
    source: str
    agent: str
    setting: str = ""


_JOB_WORDS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "orphan_merge": ("a merge job that no job waits for any more, since it was made", "S 7.3"),
        "pending": ("since it was made", "T, B 8.5"),
        "waiting": ("since it was made", "T"),
        "build_defined": ("a build job, or a job without a task", "S 7.3 TIMEOUT_defined"),
        "defined": ("", "T, B 8.5 TIMEOUT_defined"),
        "assigned": ("", "T, B 8.5"),
        "urgent_inactive": ("at a queue that has started no job for 2 h, or is offline or test", "T, B 8.5"),
        "light_inactive": ("evgen and simul, at a queue that has started no job for 2 h, or is offline or test", "T"),
        "analysis_closed": ("at a queue that is offline or test", "B 8.4"),
        "analysis": (
            "no job of the task started or ended at the queue for 3 h, since it was made",
            "B 8.4 ANALY_TIMEOUT",
        ),
        "silent_queue": ("no pilot asks for jobs at the queue, but at others, and the task may use those", "ours"),
        "no_channel": ("a consumer of events at a queue whose pilots do not reach their channel for ranges", "ours"),
        "activated": ("", "T, B 8.5"),
        "throttled": ("", "T, B 8.5"),
        "sent": ("no sign of its pilot", "T, B 8.5"),
        "events": ("a consumer of events with priority from 900, or a merge job of events; no jumbo job", "S 7.3"),
        "running": ("", "T, B 8.5"),
        "heartbeat": ("no heartbeat; a queue's workflow may have another limit", "T, B 8.5 HEARTBEAT_TIMEOUT"),
        "holding_analysis": ("and no report waits to be recorded", "T, S 7.3"),
        "holding_urgent": ("", "T, B 8.5"),
        "holding": ("", "S 7.3 TIMEOUT_holding"),
        "own_transfer": ("it transfers its own outputs and sends no heartbeat", "B 8.5"),
        "transferring_urgent": ("or what the queue sets (transfer_days_high)", "T, S 7.3"),
        "transferring": ("or what the queue sets (transfer_days_low)", "T, S 7.3"),
        "transfer_check": ("no news of the outputs", "S 7.3"),
        "before_activation": ("since it was made", "S 7.3"),
        "activated_others": ("", "S 7.3"),
        "active_analysis": ("since it was made", "S 7.3"),
    }
)

_JOB_SETTINGS: Final[Mapping[str, str]] = MappingProxyType(
    {"sent": "JEDI_SENT_TIMEOUT_S", "heartbeat": "JEDI_HEARTBEAT_TIMEOUT_S"}
)


def _job_row(rule: TimeoutRule) -> Timeout:
    words, source = _JOB_WORDS[rule.name]
    classes = [c.value for c in (rule.labels, rule.priority) if c not in (Labels.ANY, Priority.ANY)]
    condition = "; ".join(part for part in (*classes, words) if part) or "in this state"
    if rule.do == Do.KILL:
        row = kill_code(rule.kill)
        effect = f"killed with code {row.code.value} ({row.meaning}): {row.status}, its inputs are tried again"
        if rule.name == "events":
            effect = f"{effect}; what is left of a consumer goes to another one ({TOO_LONG})"
    elif rule.do == Do.FAIL:
        effect = "failed: its inputs are tried again, as one more failure"
    else:
        effect = "its transfer is checked again"
    agent = "lost_jobs" if rule.name in SILENCE else "job_timeouts"
    setting = _JOB_SETTINGS.get(rule.name, "")
    states = tuple(sorted(rule.statuses))
    return Timeout(f"job.{rule.name}", "job", states, condition, rule.limit, effect, source, agent, setting)


_TASK_ROWS: Final = (
    Timeout(
        "task.quick_retry",
        "task",
        ("pending",),
        "in this state, whatever the cause; 0: the waits of the next rows apply",
        MINUTE,
        "returns to its earlier state",
        "ours, for small installations",
        "pending",
        "JEDI_PENDING_RETRY_S",
    ),
    Timeout(
        "task.pending",
        "task",
        ("pending",),
        "no site for its jobs; production",
        HOUR,
        "returns to its earlier state",
        "B 8.5, S waitForPending",
        "pending",
    ),
    Timeout(
        "task.assigning",
        "task",
        ("assigning",),
        "no nucleus fits",
        30 * MINUTE,
        "its nucleus is brokered again",
        "B 4.1",
        "task_broker",
    ),
    Timeout(
        "task.assigning_changed",
        "task",
        ("assigning",),
        "no nucleus fitted, and the grid, parameters or replicas of its input have changed since",
        MINUTE,
        "its nucleus is brokered again",
        "ours",
        "task_broker",
    ),
    Timeout(
        "task.pending_analysis",
        "task",
        ("pending",),
        "user and panda",
        20 * MINUTE,
        "returns to its earlier state",
        "B 8.5",
        "pending",
    ),
    Timeout(
        "task.pending_900",
        "task",
        ("pending",),
        "production with priority from 900",
        30 * MINUTE,
        "returns to its earlier state",
        "S 6.5",
        "pending",
    ),
    Timeout(
        "task.pending_950",
        "task",
        ("pending",),
        "production with priority from 950",
        10 * MINUTE,
        "returns to its earlier state",
        "S 6.5",
        "pending",
    ),
    Timeout(
        "task.pending_changed",
        "task",
        ("pending",),
        "no site accepted its jobs, and the grid or parameters have changed since; whatever the cause",
        timedelta(seconds=10),
        "returns to its earlier state",
        "ours",
        "pending",
    ),
    Timeout(
        "task.stuck",
        "task",
        ("pending",),
        "no progress since frozenTime, however often it was tried; not while its parent runs",
        throttling.PENDING_LIMIT,
        "exhausted",
        "T, S 6.5 PENDING_TIMEOUT",
        "pending",
    ),
    Timeout(
        "task.exhausted",
        "task",
        ("exhausted",),
        "not with disableAutoFinish",
        throttling.EXHAUSTED_LIMIT,
        "finishing, then finished with the outputs it has",
        "T 10 days (S 48 h)",
        "exhausted",
    ),
    Timeout(
        "task.throttled_attempts",
        "task",
        ("throttled",),
        "for each step: times int(largest attempt / 5) squared",
        throttling.THROTTLE_UNIT,
        "continues; sooner when all its files are in jobs",
        "T",
        "throttle",
    ),
    Timeout(
        "task.throttled_user",
        "task",
        ("throttled",),
        "its user or group is over a limit",
        120 * MINUTE,
        "continues, or is throttled again; sooner below the limit",
        "T, S 6.5",
        "user_caps",
    ),
    Timeout(
        "task.goal",
        "task",
        ("running",),
        "time between checks for tasks that reached their goal and tried every file",
        throttling.GOAL_CHECK,
        "finished gently",
        "S 6.5 waitForAchieved",
        "goals",
    ),
    Timeout(
        "task.paused_jobs",
        "task",
        ("paused",),
        "since it was paused",
        10 * MINUTE,
        "activated jobs are held back, jobs before activation are killed with code 51",
        "S 6.5",
        "paused_tasks",
    ),
    Timeout(
        "task.empty_queue",
        "task",
        ("ready", "running", "scouting", "pending"),
        "since a production queue became empty; at once at queues with a set number of slots",
        filling.EMPTY_FOR,
        "some large tasks are sent to that queue only, until it is busy",
        "B 8.2",
        "queue_filler",
    ),
    Timeout(
        "task.withheld",
        "task",
        ("ready", "running", "scouting", "pending"),
        "time between checks for tasks with high I/O whose input is only at full queues",
        30 * MINUTE,
        "pending until a queue near its input has room",
        "B 8.2, S TaskWithholder",
        "task_withholder",
    ),
    Timeout(
        "task.crowding",
        "task",
        ("running",),
        "time between counts of each user's jobs",
        6 * MINUTE,
        "queued jobs above the cap are held back, and released below it",
        "T, S 6.5",
        "user_caps",
    ),
)

_OTHER_ROWS: Final = (
    Timeout(
        "job.waiting_for_lib",
        "job",
        ("defined",),
        "the build of its library has ended",
        HOUR,
        "started with the library, or ended with the build",
        "S 6.5",
        "waiting_for_lib",
    ),
    Timeout(
        "dataset.growing",
        "dataset",
        ("ready",),
        "an input that still grows, since its last check",
        5 * MINUTE,
        "its files are listed again",
        "S 6.2 checkInterval",
        "feeder",
        "JEDI_OPEN_DATASET_INTERVAL_S",
    ),
    Timeout(
        "dataset.forgotten",
        "dataset",
        ("defined", "toupdate"),
        "its task no longer waits for it",
        30 * MINUTE,
        "the task returns to defined, so that the dataset is fed",
        "S 3.5",
        "restart_contents",
    ),
    Timeout(
        "lock.task",
        "lock",
        (),
        "a claim on a task that was not renewed; at once when its process is gone",
        MINUTE,
        "freed; the old process can no longer write",
        "S 6.5: 60 min, own host 10 min",
        "stale_locks",
    ),
    Timeout(
        "attention.gone",
        "record",
        (),
        "an item that needed attention, since its cause was gone",
        7 * DAY,
        "deleted",
        "ours",
        "attention_tasks",
    ),
    Timeout(
        "sample.all",
        "record",
        (),
        "a sample of the grid, of a site or of a share",
        30 * DAY,
        "deleted",
        "ours",
        "old_samples",
    ),
    Timeout(
        "sample.pair",
        "record",
        (),
        "a sample of a share at a site",
        7 * DAY,
        "deleted",
        "ours",
        "old_samples",
    ),
    Timeout(
        "zip.kept",
        "record",
        (),
        "outputs of event ranges that were not merged, since their task ended",
        30 * DAY,
        "deleted: a retry processes their events anew",
        "S 2.1",
        "old_zips",
    ),
    Timeout(
        "zip.stray",
        "record",
        (),
        "a file with outputs of event ranges that its job has stored and not reported",
        7 * DAY,
        "deleted, once its job has ended",
        "ours",
        "old_zips",
    ),
)

TABLE: Final[Mapping[str, Timeout]] = MappingProxyType(
    {row.name: row for row in (*_TASK_ROWS, *(_job_row(rule) for rule in TIMEOUTS), *_OTHER_ROWS)}
)
"""All rows by name."""

SLOW_JOB_RULES: Final = frozenset(rule.name for rule in TIMEOUTS) - SILENCE
"""Rules that are looked at every minute; those of silence every few seconds."""

PARAMETERS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "task.stuck": ("watchdog", "PENDING_TIMEOUT"),
        "job.defined": ("job_timeout", "TIMEOUT_defined"),
        "job.build_defined": ("job_timeout", "TIMEOUT_defined"),
        "job.holding": ("job_timeout", "TIMEOUT_holding"),
        "job.heartbeat": ("watcher", "HEARTBEAT_TIMEOUT"),
        "job.own_transfer": ("watcher", "HEARTBEAT_TIMEOUT"),
        "job.analysis": ("rebroker", "ANALY_TIMEOUT"),
    }
)
"""Parameters of the configuration, in hours, by the row that they set."""
