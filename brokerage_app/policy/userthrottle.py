"""Whether a task of analysis gets jobs at all, before any queue is looked at. Pure.

Users and working groups have caps on running and queued jobs and cores, users a disk quota; and while the share of users
is nearly used up, those who run much wait for those who run little (JEDI brokerage document, ATLAS Analysis Job
Brokerage).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from brokerage_app.policy.classes import TaskClass
from brokerage_app.policy.configuration import Configuration
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.skip import Skip

QUEUED_TO_RUNNING: Final = 2
"""As many times the cap of running jobs or cores may be queued."""
SHARE_WITH_CLASSES: Final = "User Analysis"
"""Tasks of other shares do not wait for users who run less."""
CLASS_C_PERCENT: Final = 90.0
CLASS_B_PERCENT: Final = 95.0
NEAR_QUOTA: Final = 0.9
UNKNOWN_USER_FACTOR: Final = 0.5
"""Part of the usage that counts for a task of class A whose user's slots are not known."""


@dataclass(frozen=True, slots=True)
class UserUsage:
    """Jobs and cores of one user, or of one working group: queued ones are defined to starting, throttled included."""

    running_jobs: int = 0
    queued_jobs: int = 0
    running_cores: int = 0
    queued_cores: int = 0


@dataclass(frozen=True, slots=True)
class Caps:
    """The most running jobs and cores; twice as many may be queued. None is no cap, 0 allows no job at all."""

    jobs: float | None = None
    cores: float | None = None

    @classmethod
    def from_configuration(cls, configuration: Configuration, *, group: bool, vo: str = "") -> Caps:
        of = "GROUP" if group else "USER"
        return cls(
            jobs=configuration.get("prio_mgr", f"CAP_RUNNING_{of}_JOBS", vo=vo),
            cores=configuration.get("prio_mgr", f"CAP_RUNNING_{of}_CORES", vo=vo),
        )


@dataclass(frozen=True, slots=True)
class Quota:
    """Disk space of a user in GB. A limit of 0 is no limit; `problem` says why it could not be looked up."""

    used_gb: float = 0.0
    limit_gb: float = 0.0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ShareState:
    """How much of its target a share uses, and how much of it the task's user has.

    percent    what runs in percent of the target; None when that is not known, or too old
    level1     the same of the branch of all analysis, corrected for branches that use less than theirs; the smaller counts
    slots_hi   running slots of the user on hi queues; None when the user is not known
    """

    percent: float | None = None
    level1: float | None = None
    slots_hi: float | None = None

    @property
    def usage(self) -> float | None:
        known = [value for value in (self.percent, self.level1) if value is not None]
        return min(known) if self.percent is not None else None


def refusal(
    *,
    who: str,
    usage: UserUsage,
    caps: Caps,
    share: str = "",
    state: ShareState | None = None,
    of_class: TaskClass | None = None,
    slots_a: float = 1000.0,
    quotas: Iterable[Quota] = (),
    merging: bool = False,
) -> Skip | None:
    """Why the task gets no jobs now, by the first rule that holds; None when it may go on.

    who       the user or the working group to whom `usage` and `caps` belong, in words
    slots_a   USER_USAGE_THRESHOLD_A
    quotas    global disk quotas
    merging   the jobs are to merge: caps do not hold them back, since merging frees what the others have made
    """
    if not merging:
        skip = _over_cap(who, usage, caps)
        if skip is not None:
            return skip
    if share == SHARE_WITH_CLASSES and state is not None and of_class is not None:
        skip = _waits_for_others(state, of_class, slots_a)
        if skip is not None:
            return skip
    return _over_quota(quotas, merging=merging)


def _over_cap(who: str, usage: UserUsage, caps: Caps) -> Skip | None:
    rows = (
        (codes.USER_RUNNING_JOBS, "running job", usage.running_jobs, caps.jobs, 1),
        (codes.USER_QUEUED_JOBS, "queued job", usage.queued_jobs, caps.jobs, QUEUED_TO_RUNNING),
        (codes.USER_RUNNING_CORES, "running core", usage.running_cores, caps.cores, 1),
        (codes.USER_QUEUED_CORES, "queued core", usage.queued_cores, caps.cores, QUEUED_TO_RUNNING),
    )
    for code, thing, has, cap, times in rows:
        if cap is None or (has <= times * cap and cap > 0):
            continue
        things = thing if has == 1 else f"{thing}s"
        if cap <= 0:
            return Skip("", codes.USER_CAP_ZERO, f"{{}} {things}, and the cap is {{}} for {{}}", (has, 0, who))
        are = "is" if times * cap == 1 else "are"
        return Skip("", code, f"{{}} {things}, {{:g}} {are} allowed for {{}}", (has, times * cap, who))
    return None


def _waits_for_others(state: ShareState, of_class: TaskClass, slots_a: float) -> Skip | None:
    usage = state.usage
    if usage is None:
        return None
    if of_class is TaskClass.C and usage > CLASS_C_PERCENT:
        return _class_skip(codes.CLASS_C_WAITS, usage, CLASS_C_PERCENT, "C")
    if of_class is TaskClass.B and usage > CLASS_B_PERCENT:
        return _class_skip(codes.CLASS_B_WAITS, usage, CLASS_B_PERCENT, "B")
    if of_class is TaskClass.A:
        limit = class_a_percent(state.slots_hi, slots_a)
        if limit is not None and usage > limit:
            return _class_skip(codes.CLASS_A_WAITS, usage, limit, "A")
    return None


def _class_skip(code: str, usage: float, limit: float, name: str) -> Skip:
    says = "the share uses {:.1f} % of its target, {:.1f} % is the limit for tasks of class {}"
    return Skip("", code, says, (usage, limit, name))


def class_a_percent(slots_hi: float | None, slots_a: float) -> float | None:
    """Usage (%) up to which tasks of class A go on; None is any: nothing of the user runs on hi queues."""
    if slots_hi is None:
        return 100 / UNKNOWN_USER_FACTOR
    return max(slots_a / slots_hi, 1.0) * 100 if slots_hi > 0 else None


def _over_quota(quotas: Iterable[Quota], *, merging: bool) -> Skip | None:
    problem: Quota | None = None
    near: Quota | None = None
    for quota in quotas:
        if quota.problem:
            problem = problem or quota
        elif 0 < quota.limit_gb < quota.used_gb:
            return _quota_skip(codes.OVER_QUOTA, quota)
        elif not merging and quota.limit_gb > 0 and quota.used_gb > NEAR_QUOTA * quota.limit_gb:
            near = near or quota
    if near is not None:
        return _quota_skip(codes.NEAR_QUOTA, near)
    if problem is not None:
        return Skip("", codes.QUOTA_UNKNOWN, "failed to check the disk quota: {}", (problem.problem,))
    return None


def _quota_skip(code: str, quota: Quota) -> Skip:
    return Skip("", code, "{:.0f} GB of the quota of {:.0f} GB are used", (quota.used_gb, quota.limit_gb))
