"""Retry rules as values: which errors they match, and which of several wins. Pure.

A rule is found by the error's source and code; it may also ask for the start of the diagnosis (a regular expression),
an architecture, a release and a work queue, and may expire (lifecycle 4.18).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from jedisite.vocabulary.patterns import Pattern, PatternError, compiled
from tasks_app.domain.job_errors import STORAGE_AWAY, JobError


class RetryRuleError(ValueError):
    """A rule cannot be read; the sentence names the piece."""


class Action(StrEnum):
    """What a rule does, in the order in which actions are taken."""

    INCREASE_MEMORY = "increase_memory"
    MEMORY_XTIMES = "memory_xtimes"
    INCREASE_CPUTIME = "increase_cputime"
    REDUCE_INPUT = "reduce_input"
    LIMIT_RETRY = "limit_retry"
    NO_RETRY = "no_retry"


LIMITS: Final = (Action.LIMIT_RETRY, Action.NO_RETRY)
LONGEST_DIAGNOSIS: Final = 500
"""Characters of a diagnosis that patterns are matched against: what the columns hold."""


@dataclass(frozen=True, slots=True)
class RetryParameters:
    """Parameters of an action.

    max_attempt      limit_retry: attempts in all, 1 or more
    steps            reduce_input: attempts from which jobs read a half, a quarter, one unit of their input
    excluded_rules   reduce_input: codes of the split rule with which it does nothing
    """

    max_attempt: int | None = None
    steps: tuple[int, int, int] = (2, 4, 7)
    excluded_rules: tuple[str, ...] = ("NE", "NF")

    @classmethod
    def parse(cls, text: str | None) -> RetryParameters:
        """Read `maxAttempt=2&steps=2/4/7&excluded_rules=NE,NF` (every part may be absent). Raises RetryRuleError."""
        values: dict[str, str] = {}
        for piece in text.split("&") if text else ():
            name, equals, value = piece.partition("=")
            if not equals or name not in ("maxAttempt", "steps", "excluded_rules") or name in values:
                raise RetryRuleError(f"{piece!r} is not a parameter of a retry rule, or is given twice.")
            values[name] = value
        plain = cls()
        limit, steps, excluded = values.get("maxAttempt"), values.get("steps"), values.get("excluded_rules")
        return cls(
            plain.max_attempt if limit is None else _number(limit, "maxAttempt"),
            plain.steps if steps is None else _steps(steps),
            plain.excluded_rules if excluded is None else tuple(code for code in excluded.split(",") if code),
        )


def _number(text: str, what: str) -> int:
    if re.fullmatch(r"[1-9][0-9]{0,8}", text) is None:
        raise RetryRuleError(f"{what} of a retry rule is {text!r}, not a number from 1.")
    return int(text)


def _steps(text: str) -> tuple[int, int, int]:
    numbers = [_number(piece, "steps") for piece in text.split("/")]
    if len(numbers) != 3 or not numbers[0] < numbers[1] < numbers[2]:
        raise RetryRuleError(f"steps of a retry rule are {text!r}, not three rising numbers such as 2/4/7.")
    return numbers[0], numbers[1], numbers[2]


@dataclass(frozen=True, slots=True)
class RetryRule:
    """One rule. None is no condition. An inactive rule, or one of an inactive action, is only recorded.

    Raises RetryRuleError for a pattern that is not taken and for limit_retry without maxAttempt.
    """

    id: int
    error_source: str
    error_code: int
    action: Action
    pattern: str | None = None
    architecture: str | None = None
    release: str | None = None
    work_queue_id: int | None = None
    parameters: RetryParameters = field(default_factory=RetryParameters)
    active: bool = True
    action_active: bool = True
    expires: datetime | None = None
    _start: Pattern | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_start", _start(self.pattern))
        if self.action == Action.LIMIT_RETRY and self.parameters.max_attempt is None:
            raise RetryRuleError(f"retry rule {self.id} limits the attempts but says no maxAttempt.")

    @property
    def acts(self) -> bool:
        return self.active and self.action_active

    @property
    def conditions(self) -> int:
        """How many conditions it has besides the error itself."""
        return sum(x is not None for x in (self.pattern, self.architecture, self.release, self.work_queue_id))

    @property
    def most_attempts(self) -> int:
        """The limit of a limiting rule; no_retry is the smallest."""
        return 0 if self.action == Action.NO_RETRY else self.parameters.max_attempt or 0


def _start(pattern: str | None) -> Pattern | None:
    """What a diagnosis has to begin with, or None. Raises RetryRuleError."""
    try:
        return None if pattern is None else compiled(pattern, across_lines=True)
    except PatternError as exc:
        raise RetryRuleError(f"the pattern is not taken: {exc}.") from exc


def _begins(diagnosis: str, start: Pattern | None) -> bool:
    return start is None or start.match(diagnosis[:LONGEST_DIAGNOSIS])


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What else rules ask for: architecture and release of the job, its work queue."""

    architecture: str | None = None
    release: str | None = None
    work_queue_id: int | None = None


@dataclass(frozen=True, slots=True)
class Matches:
    """The first error that an acting rule fits, the rules to apply in order, and the rules that are only recorded."""

    error: JobError | None
    rules: tuple[RetryRule, ...]
    recorded: tuple[tuple[JobError, RetryRule], ...]


def objection(rule: RetryRule, error: JobError, where: Circumstances, now: datetime) -> str:
    """Why a rule does not fit an error now, as a sentence; empty when it does. The pattern is matched from the diagnosis'
    first character."""
    if (rule.error_source, rule.error_code) != (error.component, error.number):
        return "it is for another error"
    if rule.expires is not None and rule.expires <= now:
        return f"it expired at {rule.expires:%Y-%m-%d %H:%M} UTC"
    wanted = (("platform", rule.architecture, where.architecture), ("release", rule.release, where.release))
    for what, asked, has in wanted:
        if asked is not None and asked != has:
            return f"it is for the {what} {asked}, the job has {has or 'none'}"
    if rule.work_queue_id is not None and rule.work_queue_id != where.work_queue_id:
        return f"it is for work queue {rule.work_queue_id}, the job is of {where.work_queue_id or 'none'}"
    if _begins(error.detail, rule._start):
        return ""
    return "its pattern does not match the text"


def matches(rule: RetryRule, error: JobError, where: Circumstances, now: datetime) -> bool:
    """Whether a rule fits an error now."""
    return not objection(rule, error, where, now)


def select(errors: Iterable[JobError], rules: Sequence[RetryRule], where: Circumstances, now: datetime) -> Matches:
    """The rules to apply to a failed job.

    Only the first error that an acting rule fits counts. Of each action one rule is applied, in the order of `Action`;
    limit_retry and no_retry compete for one place. The rule with more conditions wins, then the smaller limit, then
    the older rule. Rules that do not act are returned as recorded, up to that error.
    """
    recorded: list[tuple[JobError, RetryRule]] = []
    for error in errors:
        fitting = [rule for rule in rules if matches(rule, error, where, now)]
        recorded += [(error, rule) for rule in fitting if not rule.acts]
        best: dict[Action, RetryRule] = {}
        for rule in sorted((r for r in fitting if r.acts), key=_rank):
            best.setdefault(Action.NO_RETRY if rule.action in LIMITS else rule.action, rule)
        if best:
            order = [best[action] for action in Action if action in best]
            return Matches(error, tuple(order), tuple(recorded))
    return Matches(None, (), tuple(recorded))


def _rank(rule: RetryRule) -> tuple[int, int, int]:
    return -rule.conditions, rule.most_attempts, rule.id


@dataclass(frozen=True, slots=True)
class ErrorClass:
    """A class of errors: `system` errors do not count against the files. `pattern` as in a rule; None fits any text.

    Raises RetryRuleError for a pattern that is not taken.
    """

    error_source: str
    error_code: int
    name: str
    pattern: str | None = None
    _start: Pattern | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_start", _start(self.pattern))


ENDED_WITH_SERVICE: Final = "Its pilot ended with the local workers that had started it"
GIVEN_UP: Final = "The node was given up"
SITE_ENDS: Final = (
    ErrorClass("pilot", 1201, "site_end"),
    ErrorClass("jobdispatcher", 100, "site_end", ENDED_WITH_SERVICE),
    ErrorClass("jobdispatcher", 100, "site_end", GIVEN_UP),
)
"""A pilot that was told to end while a job ran, one that the end of its local workers, or of the whole site, took with it, and
one whose node people have given up."""


NOT_STORED: Final = (ErrorClass("pilot", 1137, "not_stored"),)
"""Outputs that could not be stored: the storage may be full, or broken."""


AWAY: Final = (ErrorClass("pilot", 1099, "storage_away", STORAGE_AWAY),)
"""Inputs that could not be read since the folder of their storage is away: the files may be as good as ever."""

SPARED: Final = (*SITE_ENDS, *NOT_STORED, *AWAY)
"""Errors of jobs that leave their files the attempts that they had."""


def storage_away(errors: Iterable[JobError]) -> ErrorClass | None:
    """The class by which a job met the folder of a storage away; None when that is not why it failed."""
    return _class_of(errors, AWAY, "storage_away")


def not_stored(errors: Iterable[JobError]) -> ErrorClass | None:
    """The class by which a job could not store its outputs; None when that is not why it failed."""
    return _class_of(errors, NOT_STORED, "not_stored")


def site_end(errors: Iterable[JobError]) -> ErrorClass | None:
    """The class by which the site itself has ended the job; None when it did not."""
    return _class_of(errors, SITE_ENDS, "site_end")


def is_system_error(errors: Iterable[JobError], classes: Sequence[ErrorClass]) -> ErrorClass | None:
    """The class by which one of a job's errors is the system's own; None when no error is."""
    return _class_of(errors, classes, "system")


def _class_of(errors: Iterable[JobError], classes: Sequence[ErrorClass], name: str) -> ErrorClass | None:
    for error in errors:
        for known in classes:
            if known.name != name or (known.error_source, known.error_code) != (error.component, error.number):
                continue
            if _begins(error.detail, known._start):
                return known
    return None
