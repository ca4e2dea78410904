"""When a task is held back, hurried, paused, tried again or given up. Pure.

Every function returns a `TaskStep`, or None when nothing is to be done. Where the JEDI document gives a number it is
the default (throttling by the largest attempt number, 95 % with fewer than 100 jobs to do, 10 days as exhausted);
limits that only the running system has come from lifecycle 6.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from jedisite.vocabulary.words import plural
from tasks_app.domain import refusal_codes
from tasks_app.domain.final import Books, completeness
from tasks_app.domain.reasons import Reason
from tasks_app.domain.states import TASK_FINAL, TaskStatus

ATTEMPTS_A_STEP: Final = 5
THROTTLE_UNIT: Final = timedelta(minutes=120)
LONGEST_THROTTLE: Final = timedelta(days=365)
BOOST_PRIORITY: Final = 900
BOOST_SHARE: Final = "Express"
EXHAUSTED_LIMIT: Final = timedelta(days=10)
"""The JEDI document's; the running system's template has 48 hours, which an installation may pass instead."""
PENDING_LIMIT: Final = timedelta(days=7)
GOAL_CHECK: Final = timedelta(minutes=60)


@dataclass(frozen=True, slots=True)
class TaskStep:
    """One step of a task. None leaves the status or the column.

    status          the new status; `back` says to return to oldStatus instead
    until           end of throttling
    num_throttled   the new count of throttlings
    priority, share the new current priority and global share
    soft_finish     no more jobs are made, running ones end
    """

    reason: Reason
    status: TaskStatus | None = None
    back: bool = False
    until: datetime | None = None
    num_throttled: int | None = None
    priority: int | None = None
    share: str | None = None
    soft_finish: bool = False


def throttle_by_attempts(
    status: str, largest_attempt: int, num_throttled: int | None, now: datetime
) -> TaskStep | None:
    """Hold back a task whose files need many attempts: at attempts 5, 10, 15… for 120 × int(largest / 5)² minutes.

    `largest_attempt` is the largest attemptNr of master files that are ready or running. `num_throttled` holds the
    multiple of five at which the task was throttled last, so that it is throttled once for each, even if a pass misses
    the number itself; None (noThrottle) switches this off.
    """
    if status != TaskStatus.RUNNING or num_throttled is None:
        return None
    step = max(largest_attempt, 0) // ATTEMPTS_A_STEP
    if step <= num_throttled:
        return None
    length = min(THROTTLE_UNIT * min(step, 1000) ** 2, LONGEST_THROTTLE)
    minutes = int(length.total_seconds() // 60)
    detail = (
        f"a file has been tried {plural(largest_attempt, 'time')}, so no jobs are made for {plural(minutes, 'minute')}"
    )
    return TaskStep(
        Reason(refusal_codes.TASK_MANY_ATTEMPTS, detail), TaskStatus.THROTTLED, until=now + length, num_throttled=step
    )


def release_throttled(status: str, until: datetime | None, unused_files: int, now: datetime) -> TaskStep | None:
    """Let a throttled task go on when its time is over, or when it has nothing left to make jobs from."""
    if status != TaskStatus.THROTTLED:
        return None
    if until is None or until <= now:
        return TaskStep(Reason(refusal_codes.TASK_UNTHROTTLED, "the period of throttling is over"), back=True)
    if unused_files <= 0:
        return TaskStep(
            Reason(refusal_codes.TASK_UNTHROTTLED, "all files are in jobs, so there is nothing to throttle"), back=True
        )
    return None


@dataclass(frozen=True, slots=True)
class BoostView:
    """A task near its end. Files of master inputs, and jobs that are still to be done (open, or to be made).

    parent   status of the parent task, None without one
    """

    status: str
    files: int
    files_done: int
    jobs_to_do: int
    priority: int
    share: str | None
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class BoostLimits:
    """Per cent of files done from which, and jobs to do below which, a task is hurried; the share that it gets, None
    leaves its own."""

    done_percent: float = 95
    jobs_below: int = 100
    share: str | None = BOOST_SHARE


def boost(view: BoostView, limits: BoostLimits | None = None) -> TaskStep | None:
    """Hurry the last jobs of a running task: priority 900 at least and share Express.

    Not while the parent task may still add input. None too when both are so already.
    """
    limits = limits or BoostLimits()
    if view.status != TaskStatus.RUNNING or view.files <= 0 or not 0 < view.jobs_to_do < limits.jobs_below:
        return None
    if view.files_done * 100 < view.files * limits.done_percent:
        return None
    if view.parent is not None and view.parent not in TASK_FINAL:
        return None
    priority = max(view.priority, BOOST_PRIORITY)
    share = view.share if limits.share is None else limits.share
    if priority == view.priority and view.share == share:
        return None
    done = 100 * view.files_done // view.files
    left = plural(view.jobs_to_do, "job is", "jobs are")
    detail = f"{done} % of {plural(view.files, 'file is', 'files are')} done and {left} left: priority {priority}"
    detail += f", share {share}" if share else ""
    return TaskStep(Reason(refusal_codes.TASK_BOOSTED, detail), priority=priority, share=share)


@dataclass(frozen=True, slots=True)
class FailureView:
    """Jobs of a task: all, ended well, failed, still to be done; HS06 hours of all ended jobs and of failed ones.

    no_auto_pause   NP of the split rule
    """

    status: str
    jobs: int
    finished: int
    failed: int
    remaining: int
    used_hs06_hours: float = 0.0
    lost_hs06_hours: float = 0.0
    no_auto_pause: bool = False


@dataclass(frozen=True, slots=True)
class PauseLimits:
    """MIN_JOBS_TO_PAUSE_, MIN_REMAINING_JOBS_TO_PAUSE_, MAX_JOB_FAILURE_RATE_TO_PAUSE_ and
    MAX_HEP_SCORE_FAILURE_RATE_TO_PAUSE_, the last two in per cent; None switches one off."""

    min_jobs: int = 1000
    min_remaining: int = 100
    max_failed_percent: float | None = None
    max_lost_percent: float | None = None


def auto_pause(view: FailureView, limits: PauseLimits) -> TaskStep | None:
    """Pause a running task when too many of its jobs fail, by number or by the work that is lost.

    Not with NP, nor with few jobs or few remaining ones.
    """
    if view.status != TaskStatus.RUNNING or view.no_auto_pause:
        return None
    if view.jobs < limits.min_jobs or view.remaining < limits.min_remaining:
        return None
    ended = view.finished + view.failed
    rates = (
        (f"{view.failed} of {plural(ended, 'job')} failed", view.failed, ended, limits.max_failed_percent),
        (
            f"{view.lost_hs06_hours:.0f} of {view.used_hs06_hours:.0f} HS06 hours were lost",
            view.lost_hs06_hours,
            view.used_hs06_hours,
            limits.max_lost_percent,
        ),
    )
    for words, part, total, most in rates:
        if most is not None and total > 0 and 100 * part >= most * total:
            detail = f"{words} ({100 * part / total:.0f} %), {most:g} % are the limit; " + plural(
                view.remaining, "job remains", "jobs remain"
            )
            return TaskStep(Reason(refusal_codes.TASK_AUTO_PAUSED, detail), TaskStatus.PAUSED)
    return None


def pending_wait(label: str, priority: int) -> timedelta:
    """How long a pending task rests before it tries again.

    The brokerage document: 1 h for jobs of production, 20 min for analysis. Urgent production returns sooner: after
    10 min from priority 950, after 30 min from 900.
    """
    if label in ("user", "panda"):
        return timedelta(minutes=20)
    if priority >= 950:
        return timedelta(minutes=10)
    return timedelta(minutes=30 if priority >= 900 else 60)


@dataclass(frozen=True, slots=True)
class PendingView:
    """A pending task.

    since         when it became pending
    due           when it is tried again
    frozen_since  when it last did anything; None while it waits for its parent or for staging, which has no time-out
    parent        status of the parent task, None without one
    """

    old_status: str | None
    since: datetime
    frozen_since: datetime | None
    due: datetime
    parent: str | None = None


def leave_pending(view: PendingView, now: datetime, limit: timedelta = PENDING_LIMIT) -> TaskStep | None:
    """Try a pending task again after its wait, or give it up as exhausted after `limit` without anything done.

    It is not given up while its parent works. A task that does not know where to return to stays.
    """
    if not view.old_status:
        return None
    parent_works = view.parent is not None and view.parent not in TASK_FINAL
    if view.frozen_since is not None and now - view.frozen_since >= limit and not parent_works:
        days = limit / timedelta(days=1)
        detail = f"no progress was possible since {view.frozen_since:%Y-%m-%d %H:%M} UTC, the limit is {days:g} d"
        return TaskStep(Reason(refusal_codes.TASK_PENDING_TOO_LONG, detail), TaskStatus.EXHAUSTED)
    if now < view.due:
        return None
    seconds = int((now - view.since).total_seconds())
    waited = plural(seconds, "second") if seconds < 60 else plural(seconds // 60, "minute")
    detail = f"returns to {view.old_status} after {waited}"
    return TaskStep(Reason(refusal_codes.TASK_TRIES_AGAIN, detail), back=True)


@dataclass(frozen=True, slots=True)
class ExhaustedView:
    """An exhausted task: since when, and DF (it waits for a person however long that takes)."""

    since: datetime
    wait_for_ever: bool = False


def leave_exhausted(view: ExhaustedView, now: datetime, limit: timedelta = EXHAUSTED_LIMIT) -> TaskStep | None:
    """Finish an exhausted task that nobody decided about: it becomes finishing, then passed, with what it has."""
    if view.wait_for_ever or now - view.since < limit:
        return None
    days = limit / timedelta(days=1)
    detail = f"exhausted since {view.since:%Y-%m-%d %H:%M} UTC, the limit is {days:g} d"
    return TaskStep(Reason(refusal_codes.TASK_EXHAUSTED_TOO_LONG, detail), TaskStatus.FINISHING)


def finish_achieved(status: str, books: Books, untried_files: int) -> TaskStep | None:
    """Finish a running task gently once its goal is reached and every file was tried. Only for tasks with a goal."""
    if status != TaskStatus.RUNNING or books.goal is None or untried_files > 0 or books.finished >= books.files:
        return None
    reached = completeness(books)
    if reached < books.goal:
        return None
    detail = f"{reached / 10:g} % of the input was processed, the goal is {books.goal / 10:g} %, every file was tried"
    return TaskStep(Reason(refusal_codes.TASK_GOAL_REACHED, detail), TaskStatus.FINISHING, soft_finish=True)
