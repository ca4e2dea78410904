"""How many more jobs of a work queue or share may be made now, and why not more. Pure.

The queue of jobs that do not run yet is kept near what the sites can start soon, so that priorities and the state of the
sites still count when a job is made. Rules, numbers and their order are those of the JEDI brokerage documents. Production
and analysis are throttled alike; only analysis knows no urgent tasks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from brokerage_app.policy.broker_parameters import THROTTLERS
from brokerage_app.policy.configuration import Configuration, Level
from brokerage_app.vocabulary import codes
from jedisite import refusals
from jedisite.vocabulary.words import plural, thousands

LEAST_BUNCH: Final = 500
MOST_BUNCH: Final = 600
BUNCHES_QUEUED: Final = 4
"""Bunches that may be queued where no limit is configured."""
PARTS_OF_BUNCH: Final = 2
PARTS_OF_CAP: Final = 5
PARTS_OF_LIMIT: Final = 20
NEARLY: Final = 0.9
WAITING_TO_RUNNING: Final = 4
WAITING_BUNCHES: Final = 2
ENOUGH_WALLTIME_S: Final = 50_000_000
"""Queued work, in seconds of walltime, below which many queued jobs are no reason to stop: they are short."""
URGENT_JOBS: Final = 500
"""Jobs of the highest priority that may wait before tasks of the same priority stop being urgent."""
WHOLE_QUEUES: Final = frozenset({"eventservice"})
"""Queues that are looked at as a whole, since their tasks make jobs of several resource types."""
PRESTAGED: Final = frozenset({"Heavy Ion", "Reprocessing default"})
"""Queues whose bunches fill what is left up to the limit, since their inputs have been staged for it."""
NEVER_URGENT: Final = frozenset({"user", "panda"})
PRODUCTION, ANALYSIS = THROTTLERS
CORE_CLASSES: Final = ("MCORE", "SCORE")


@dataclass(frozen=True, slots=True)
class JobCounts:
    """Jobs by state. `not_running` is assigned + activated + sent + starting; `defined` includes pending ones."""

    running: int = 0
    not_running: int = 0
    defined: int = 0
    waiting: int = 0

    @property
    def queued(self) -> int:
        return self.not_running + self.defined

    def __add__(self, other: JobCounts) -> JobCounts:
        return JobCounts(
            self.running + other.running,
            self.not_running + other.not_running,
            self.defined + other.defined,
            self.waiting + other.waiting,
        )


@dataclass(frozen=True, slots=True)
class Levels:
    """Jobs of one resource type, of all types with one core or with several (`core_class`), and of the whole queue."""

    resource_type: JobCounts = JobCounts()
    core_class: JobCounts = JobCounts()
    whole_queue: JobCounts = JobCounts()

    def at(self, level: Level) -> JobCounts:
        if level == Level.RESOURCE:
            return self.resource_type
        return self.core_class if level == Level.CORES else self.whole_queue


@dataclass(frozen=True, slots=True)
class Limit:
    """A configured number of jobs, and the level whose jobs are compared with it. `name`: where it is set, for people."""

    value: int
    level: Level = Level.RESOURCE
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ThrottleLimits:
    """THROTTLE_THRESHOLD (or the one for a shortage of work), NQUEUELIMIT, NQUEUECAP and NRUNNINGCAP; None is not set."""

    threshold: float = 2.0
    queue_limit: Limit | None = None
    queue_cap: Limit | None = None
    running_cap: Limit | None = None


@dataclass(frozen=True, slots=True)
class Situation:
    """One work queue or share, of one label, and one resource type.

    throttled             False for shares that are never throttled, and for work queues without a share
    walltime_s            expected walltime of all queued jobs; None is not known
    waiting_priority      highest priority of its tasks that have input left; None without any
    highest_priority      highest priority of its jobs that have not ended; None without any
    not_running_highest   how many of these do not run yet
    """

    queue: str
    label: str = "managed"
    resource_type: str = ""
    jobs: Levels = Levels()
    throttled: bool = True
    walltime_s: float | None = None
    waiting_priority: int | None = None
    highest_priority: int | None = None
    not_running_highest: int = 0


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """One rule with its numbers. `held`: it is a reason to stop. `yields`: urgent tasks go on in spite of it.

    advice   what to set to which value; "" where the advice of the code is all there is
    """

    code: str
    held: bool
    detail: str
    yields: bool = True
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Allowance:
    """How many jobs may be made now.

    max_jobs       None is any number; 0 when nothing passed
    min_priority   only tasks of this priority and above; None is all
    lack_of_jobs   far fewer jobs are queued than may be: the next pass may follow at once
    code, detail   what stops jobs, all of them or those of less urgent tasks; empty when nothing does
    advice         which setting stops them, and to what it would have to be changed; empty when none does
    rules          every rule with its numbers, for `explain`

    Raises UnknownRefusalError when the code is not registered.
    """

    passed: bool
    max_jobs: int | None
    min_priority: int | None = None
    lack_of_jobs: bool = False
    code: str = ""
    detail: str = ""
    rules: tuple[RuleCheck, ...] = field(default=(), repr=False)
    advice: str = ""

    def __post_init__(self) -> None:
        if self.code:
            refusals.checked(self.code)

    @property
    def merge_only(self) -> bool:
        """Whether only jobs that merge what others have made are allowed: they are never held back."""
        return not self.passed

    def refuses(self, priority: int) -> bool:
        """Whether tasks of a priority get no jobs now."""
        return not self.passed or (self.min_priority is not None and priority < self.min_priority)


def limits_of(configuration: Configuration, label: str, queue: str, resource_type: str, vo: str) -> ThrottleLimits:
    """The limits that are configured for a queue or share and a resource type."""
    component = ANALYSIS if label in NEVER_URGENT else PRODUCTION
    shortage = configuration.get("core", "WORK_SHORTAGE", vo=vo)
    threshold = "THROTTLE_THRESHOLD_FOR_WORK_SHORTAGE" if shortage else "THROTTLE_THRESHOLD"

    def limit(key: str) -> Limit | None:
        found = configuration.leveled(component, key, queue, resource_type, vo=vo)
        return None if found.value is None else Limit(found.value, found.level, f"{component}.{found.key}")

    return ThrottleLimits(
        configuration.get(component, threshold, vo=vo), limit("NQUEUELIMIT"), limit("NQUEUECAP"), limit("NRUNNINGCAP")
    )


UNLIMITED: Final = Allowance(passed=True, max_jobs=None)


def core_class(resource_type: str) -> str:
    """MCORE or SCORE, by the name of the type; empty for other names."""
    return next((name for name in CORE_CLASSES if resource_type.startswith(name)), "")


def throttle(seen: Situation, limits: ThrottleLimits | None = None) -> Allowance:
    """Decide how many jobs may be made of a queue's tasks.

    The first rule that holds stops all but merge jobs. When urgent tasks wait they go on alone, except against the cap on
    running jobs.
    """
    if not seen.throttled:
        return UNLIMITED
    limits = limits or ThrottleLimits()
    bunch, limit = bunch_and_limit(seen, limits)
    rules = _rules(seen, limits, bunch, limit)
    cap = limits.queue_cap
    # Of a cap below five a fifth is none, and then no task would ever get jobs, however few are queued.
    most = bunch // PARTS_OF_BUNCH if cap is None else max(cap.value // PARTS_OF_CAP, 1)
    stops = next((rule for rule in rules if rule.held and not rule.yields), None) or next(
        (rule for rule in rules if rule.held), None
    )
    if stops is not None and not (stops.yields and urgent(seen)):
        return Allowance(False, 0, None, False, stops.code, stops.detail, rules, stops.advice)
    if stops is not None:
        detail = f"{stops.detail}; only tasks with priority {seen.waiting_priority} or more get jobs"
        return Allowance(
            True, most, seen.waiting_priority, False, codes.THROTTLED_PRIORITY, detail, rules, stops.advice
        )
    queued = seen.jobs.at(limit.level).queued
    if queued < NEARLY * limit.value or _own(seen).queued < _own(seen).running:
        return Allowance(True, max(most, limit.value // PARTS_OF_LIMIT), lack_of_jobs=True, rules=rules)
    return Allowance(True, most, rules=rules)


def urgent(seen: Situation) -> bool:
    """Whether tasks wait that are more urgent than all jobs, or as urgent as the most urgent few."""
    waiting, highest = seen.waiting_priority, seen.highest_priority
    if seen.label in NEVER_URGENT or waiting is None:
        return False
    if highest is None or waiting > highest:
        return True
    return waiting == highest and seen.not_running_highest < URGENT_JOBS


def bunch_and_limit(seen: Situation, limits: ThrottleLimits) -> tuple[int, Limit]:
    """Jobs of one bunch, and how many may be queued: as configured, or four bunches."""
    jobs = _own(seen)
    bunch = min(max(LEAST_BUNCH, int(jobs.running * limits.threshold - jobs.not_running)), MOST_BUNCH)
    limit = limits.queue_limit or Limit(bunch * BUNCHES_QUEUED, _level(seen))
    if seen.queue in PRESTAGED:
        bunch = max(bunch, min(limit.value - seen.jobs.at(limit.level).queued, MOST_BUNCH))
    return bunch, limit


def _level(seen: Situation) -> Level:
    return Level.QUEUE if seen.queue in WHOLE_QUEUES else Level.RESOURCE


def _own(seen: Situation) -> JobCounts:
    return seen.jobs.at(_level(seen))


def _rules(seen: Situation, limits: ThrottleLimits, bunch: int, limit: Limit) -> tuple[RuleCheck, ...]:
    jobs, at_limit = _own(seen), seen.jobs.at(limit.level)
    much = seen.queue in WHOLE_QUEUES or seen.walltime_s is None or seen.walltime_s > ENOUGH_WALLTIME_S
    over = at_limit.queued > limit.value
    work = _work(seen)
    ratio = jobs.queued / jobs.running if jobs.running else 0.0
    most_waiting = max(WAITING_TO_RUNNING * jobs.running, WAITING_BUNCHES * bunch)
    queued = (
        f"{plural(at_limit.queued, 'job is', 'jobs are')} queued{_of(limit)}, the limit is {thousands(limit.value)}"
    )
    rules = [
        RuleCheck(
            codes.THROTTLED_NONE_RUNNING,
            jobs.running == 0 and over and much,
            f"{plural(jobs.running, 'job runs', 'jobs run')} and {queued}{work}",
        ),
        RuleCheck(
            codes.THROTTLED_QUEUED,
            jobs.running > 0 and ratio > limits.threshold and over and much,
            f"{plural(jobs.queued, 'job is', 'jobs are')} queued for {plural(jobs.running, 'that runs', 'that run')}"
            f"{f' ({ratio:.2f} times as many)' if jobs.running else ''}, the limit is {limits.threshold:g} times as many;"
            f" {queued}{work}",
        ),
        RuleCheck(
            codes.THROTTLED_DEFINED,
            at_limit.defined > limit.value,
            f"{plural(at_limit.defined, 'job is', 'jobs are')} defined{_of(limit)}, the limit is {thousands(limit.value)}",
        ),
        RuleCheck(
            codes.THROTTLED_WAITING,
            jobs.waiting > most_waiting,
            f"{plural(jobs.waiting, 'job waits', 'jobs wait')} for input with {thousands(jobs.running)} running,"
            f" the limit is {thousands(most_waiting)}",
        ),
    ]
    if limits.running_cap is not None:
        running = seen.jobs.at(limits.running_cap.level).running
        detail = f"{plural(running, 'job runs', 'jobs run')}{_of(limits.running_cap)}"
        detail += f", the cap is {thousands(limits.running_cap.value)}"
        rules.append(
            _cap(seen, limits.running_cap, running, codes.THROTTLED_RUNNING_CAP, detail, "running", yields=False)
        )
    if limits.queue_cap is not None:
        waits = seen.jobs.at(limits.queue_cap.level).queued
        detail = f"{plural(waits, 'job is', 'jobs are')} queued{_of(limits.queue_cap)}"
        detail += f", the cap is {thousands(limits.queue_cap.value)}"
        rules.append(_cap(seen, limits.queue_cap, waits, codes.THROTTLED_QUEUE_CAP, detail, "queued", yields=True))
    return tuple(rules)


def _cap(seen: Situation, cap: Limit, jobs: int, code: str, detail: str, which: str, *, yields: bool) -> RuleCheck:
    """Waiting does not help against a cap of 0, whatever the jobs: the sentence names the cap."""
    if cap.value > 0:
        advice = _raised(
            f"Wait until {'pilots have started queued' if yields else 'running'} jobs{'' if yields else ' have ended'}",
            cap,
            jobs,
        )
        return RuleCheck(code, beyond(jobs, cap), detail, yields=yields, advice=advice)
    detail = f"the cap on {which} jobs of {seen.queue}{_of(cap)} is {cap.value}"
    return RuleCheck(codes.THROTTLED_CAP_ZERO, True, detail, yields=False, advice=_raised("", cap, jobs))


def _raised(before: str, cap: Limit, jobs: int) -> str:
    """What to do about a cap; empty when it is unknown where the cap is set."""
    if not cap.name:
        return ""
    have = f"have an administrator set {cap.name} to {jobs + 1} or more (it is {cap.value})"
    return f"{before}, or {have}." if before else f"{have[0].upper()}{have[1:]}."


def beyond(jobs: int, cap: Limit) -> bool:
    """Whether there are more jobs than a cap allows. A cap of 0 allows none: not even the first ones."""
    return jobs > cap.value or cap.value <= 0


def _of(limit: Limit) -> str:
    return "" if limit.level == Level.RESOURCE else f" ({limit.level})"


def _work(seen: Situation) -> str:
    if seen.walltime_s is None or seen.queue in WHOLE_QUEUES:
        return ""
    return f"; they need {seen.walltime_s:.0f} s, and more are made only up to {ENOUGH_WALLTIME_S} s"


def explain(allowance: Allowance) -> list[str]:
    """The decision for people: the outcome, then every rule with its numbers and whether it is a reason to stop."""
    if not allowance.rules:
        return ["Not throttled: jobs may be made without limit."]
    if allowance.merge_only:
        head = f"{refusals.get(allowance.code).title}: {allowance.detail}. Only merge jobs are made."
    elif allowance.min_priority is not None:
        head = f"{plural(allowance.max_jobs or 0, 'job')} may be made: {allowance.detail}."
    else:
        head = f"{plural(allowance.max_jobs or 0, 'job')} may be made" + (
            ", and soon more." if allowance.lack_of_jobs else "."
        )
    return [head, *(_explained(rule) for rule in allowance.rules)]


def _explained(rule: RuleCheck) -> str:
    what = refusals.get(rule.code).title.removeprefix("Throttled: ")
    return f"{'stops' if rule.held else 'does not stop'}: {what} ({rule.detail})"


def total_walltime_s(known_s: float, with_walltime: int, without: int) -> float | None:
    """Expected walltime of queued jobs, scaled to those that do not state one; None when none states it."""
    return known_s * (1 + without / with_walltime) if with_walltime else None


@dataclass(frozen=True, slots=True)
class Standby:
    """Slots that a queue in status standby keeps for a work queue or share and a resource type.

    slots   None is as many as have been started there (a dynamic number)
    """

    queue: str
    resource_type: str
    slots: int | None = None


def parse_standby(text: str) -> tuple[Standby, ...]:
    """Read `nStandby`: items `share or work queue:resource type:number` with | between; an empty number or 0 is dynamic.

    Items of another form are left out.
    """
    found = []
    for item in text.split("|"):
        parts = [part.strip() for part in item.split(":")]
        if len(parts) == 3 and parts[0] and (parts[2] == "" or parts[2].isdigit()):
            found.append(Standby(parts[0], parts[1], int(parts[2] or 0) or None))
    return tuple(found)


def with_standby(counts: JobCounts, slots: Iterable[tuple[Standby, int]]) -> JobCounts:
    """Count standby slots as running. Each comes with the jobs that are starting at its queue: with a dynamic number
    these count as running in the place of waiting to run."""
    for standby, starting in slots:
        counts += JobCounts(standby.slots) if standby.slots else JobCounts(starting, -starting)
    return counts
