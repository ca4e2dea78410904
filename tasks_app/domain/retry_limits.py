"""Hard limits of retries: when a task has been tried so often, or fails so much, that it is not tried again. Pure.

The limits and their order are lifecycle 3.4's; all are off by default. A limit whose measure is not known does not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from jedisite.vocabulary.words import plural
from tasks_app.domain.states import TaskStatus


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """None or 0: no limit.

    task_attempts          attempts of the task
    failed_score_hours     HS23 hours of failed jobs
    failed_score_rate      part of the HS23 hours that failed jobs took, 0 to 1
    job_failure_rate       part of the ended jobs that failed, 0 to 1
    file_attempts          the largest number of attempts that an input file may have
    min_cpu_efficiency     per cent that the median job must reach
    """

    task_attempts: int | None = None
    failed_score_hours: float | None = None
    failed_score_rate: float | None = None
    job_failure_rate: float | None = None
    file_attempts: int | None = None
    min_cpu_efficiency: float | None = None

    @property
    def are_off(self) -> bool:
        return not any(getattr(self, name) for name in self.__slots__)


@dataclass(frozen=True, slots=True)
class RetryFacts:
    """What is known of the task that is to be tried again, by the same names."""

    task_attempts: int
    failed_score_hours: float | None = None
    failed_score_rate: float | None = None
    job_failure_rate: float | None = None
    file_attempts: int | None = None
    cpu_efficiency: float | None = None


class Refusal(NamedTuple):
    """Why a task is not tried again. `to` is exhausted, or None: the task goes back to where it was."""

    to: TaskStatus | None
    sentence: str


def refusal(facts: RetryFacts, limits: RetryLimits) -> Refusal | None:
    """The first limit that forbids a retry; None when it may be tried."""
    to = TaskStatus.EXHAUSTED
    if limits.task_attempts and facts.task_attempts >= limits.task_attempts:
        allowed = plural(limits.task_attempts, "is", "are")
        return Refusal(to, f"it was tried {plural(facts.task_attempts, 'time')}, and {allowed} allowed")
    if _reached(facts.failed_score_hours, limits.failed_score_hours):
        return Refusal(
            to,
            f"failed jobs took {facts.failed_score_hours:g} HS23 hours, and {limits.failed_score_hours:g} are allowed",
        )
    if _reached(facts.failed_score_rate, limits.failed_score_rate):
        return Refusal(
            to, _rate("of the HS23 hours went to failed jobs", facts.failed_score_rate, limits.failed_score_rate)
        )
    if _reached(facts.job_failure_rate, limits.job_failure_rate):
        return Refusal(to, _rate("of the jobs failed", facts.job_failure_rate, limits.job_failure_rate))
    if limits.file_attempts and facts.file_attempts is not None and facts.file_attempts >= limits.file_attempts:
        allowed = plural(limits.file_attempts, "is", "are")
        return Refusal(
            None, f"an input file has {plural(facts.file_attempts, 'attempt')} already, and {allowed} allowed"
        )
    efficiency, least = facts.cpu_efficiency, limits.min_cpu_efficiency
    if least and efficiency is not None and efficiency < least:
        return Refusal(to, f"the median CPU efficiency is {efficiency:g} %, below {least:g} %")
    return None


def _reached(value: float | None, limit: float | None) -> bool:
    return bool(limit) and value is not None and limit is not None and value >= limit


def _rate(what: str, value: float | None, limit: float | None) -> str:
    return f"{100 * (value or 0):g} % {what}, and {100 * (limit or 0):g} % are allowed"
