"""What retry rules do to the files and the task of a failed job. Pure.

Everything here reads the numbers as they are *after* the failure was booked: `attempt` and `failed_attempt` have
been raised already. From lifecycle 4.18; the memory steps are in `memory.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final

from jedisite.vocabulary.words import plural
from tasks_app.domain import attempt_refusal_codes
from tasks_app.domain.failure_reasons import failed, limited_as
from tasks_app.domain.job_errors import JobError
from tasks_app.domain.reasons import Reason
from tasks_app.domain.retry_rules import (
    Action,
    Circumstances,
    ErrorClass,
    RetryRule,
    is_system_error,
    not_stored,
    select,
    site_end,
    storage_away,
)
from tasks_app.domain.units import event_cpu_time
from tasks_app.params.splitrule import SplitRule
from tasks_app.retries.rules.memory import (
    JobMemory,
    MemoryNeeds,
    MemoryRaise,
    RaisedFiles,
    increase_memory,
    multiply_memory,
)
from tasks_app.splitting.limits import DEFAULT_MAX_FILES

MOST_SPARED: Final = 10
"""From so many attempts of a file on also those count that the site has ended, or taken from a queue before a pilot had the
job, or that met a storage full, broken or away: something of the file may be to blame, and no file goes round without an end."""
CPU_GROWTH: Final = 1.1
"""A job that ended at its time limit needed at least this much more."""


@dataclass(frozen=True, slots=True)
class FileAttempts:
    """A master input file of the failed job, as booked. None in a limit: there is none. Memory in MB, 0: the task's."""

    file_id: int
    attempt: int
    max_attempt: int | None = 3
    failed_attempt: int = 0
    max_failure: int | None = None
    ram_mb: int | None = 0

    @property
    def has_another(self) -> bool:
        """Whether the file is tried again. Limits are compared after the increment."""
        if self.max_attempt is not None and self.attempt >= self.max_attempt:
            return False
        return self.max_failure is None or self.failed_attempt < self.max_failure


@dataclass(frozen=True, slots=True)
class FailedJob:
    """A failed job: its errors in order of importance, what it had and used.

    history      earlier failures of a package of a workflow by the reason that limits them
    walltime_s   seconds that it ran
    events       events that it was to process
    """

    errors: tuple[JobError, ...]
    files: tuple[FileAttempts, ...]
    where: Circumstances = field(default_factory=Circumstances)
    history: Mapping[str, int] = field(default_factory=dict)
    memory: JobMemory = field(default_factory=lambda: JobMemory(0))
    walltime_s: float = 0.0
    core_power: float = 10.0
    events: int = 0


@dataclass(frozen=True, slots=True)
class RetryTask:
    """The task of a failed job. CPU time in the task's unit for each event, base walltime in seconds.

    has_finished   a job that is not a build job has finished
    merges         the job was to merge what others have written, and `memory` is that of merge jobs
    restarts       of a workflow's task: so often packages are restarted for each reason; empty is no limit by reason
    """

    rule: SplitRule = field(default_factory=SplitRule)
    memory: MemoryNeeds = field(default_factory=lambda: MemoryNeeds(2000))
    raised: RaisedFiles = field(default_factory=RaisedFiles)
    cpu_time: float | None = None
    cpu_time_unit: str = "HS06sPerEvent"
    cpu_efficiency_percent: int = 90
    base_walltime_s: int = 600
    has_finished: bool = False
    merges: bool = False
    restarts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FileChange:
    """New numbers of one file; None leaves the column as it is."""

    file_id: int
    max_attempt: int | None = None
    max_failure: int | None = None
    ram_mb: int | None = None


@dataclass(frozen=True, slots=True)
class TaskChange:
    """New numbers of the task; None leaves the column. `measure_again` clears walltimeUnit, so that scouts' numbers
    are measured anew. A changed `ram_mb` changes the task's resource type."""

    ram_mb: int | None = None
    rule: SplitRule | None = None
    cpu_time: int | None = None
    cpu_time_unit: str | None = None
    measure_again: bool = False


@dataclass(frozen=True, slots=True)
class RetryDecision:
    """What to write.

    files      the files that change
    gives_up   ids of files that had another attempt and have none any more: they count as failed now
    takes_up   ids of files that had no attempt left and have one again: they do not count as failed
    reasons    what was done and why; `recorded` is what inactive rules would have done
    rule_ids   the rules that were applied
    """

    files: tuple[FileChange, ...] = ()
    task: TaskChange = field(default_factory=TaskChange)
    gives_up: tuple[int, ...] = ()
    takes_up: tuple[int, ...] = ()
    reasons: tuple[Reason, ...] = ()
    recorded: tuple[Reason, ...] = ()
    rule_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Draft:
    files: Mapping[int, FileAttempts]
    task: TaskChange = field(default_factory=TaskChange)
    reasons: tuple[Reason, ...] = ()


def decide(
    job: FailedJob, task: RetryTask, rules: Sequence[RetryRule], classes: Sequence[ErrorClass], now: datetime
) -> RetryDecision:
    """What the rules do after a job has failed; see `retry_rules.select` for which of them apply.

    Attempts are raised only for jobs that the site itself has ended, whose outputs could not be stored, or whose inputs lie in
    a storage that was away; memory is never lowered.
    An error of the class `system` gives one more failure to files with a limit on failures. Raises ValueError for
    an unknown unit of memory or CPU time.
    """
    draft = _Draft(MappingProxyType({f.file_id: f for f in job.files}))
    if system := is_system_error(job.errors, classes):
        draft = _forgive(draft, system)
    if (ended := site_end(job.errors)) and not task.rule.flag("DR"):
        detail = (
            f"the site ended the job ({ended.error_source} error {ended.error_code}), so the attempt does not count"
        )
        draft = _spare(draft, Reason(attempt_refusal_codes.RETRY_SITE_ENDED, detail))
    elif (unstored := not_stored(job.errors)) and not task.rule.flag("DR"):
        error = f"{unstored.error_source} error {unstored.error_code}"
        detail = f"its outputs could not be stored ({error}), so the attempt does not count"
        draft = _spare(draft, Reason(attempt_refusal_codes.RETRY_NOT_STORED, detail))
    elif (away := storage_away(job.errors)) and not task.rule.flag("DR"):
        error = f"{away.error_source} error {away.error_code}"
        detail = f"the storage with its inputs was away ({error}), so the attempt does not count"
        draft = _spare(draft, Reason(attempt_refusal_codes.RETRY_STORAGE_AWAY, detail))
    found = select(job.errors, rules, job.where, now)
    for rule in found.rules:
        draft = _EFFECTS[rule.action](draft, job, task, rule)
    if task.restarts and (limited := limited_as(job.errors, task.restarts)):
        draft = _restart(draft, job, task, limited)
    before = {f.file_id: f for f in job.files}
    pairs = [(before[i], after) for i, after in draft.files.items()]
    return RetryDecision(
        tuple(_change(old, new) for old, new in pairs if old != new),
        draft.task,
        tuple(new.file_id for old, new in pairs if old.has_another and not new.has_another),
        tuple(new.file_id for old, new in pairs if new.has_another and not old.has_another),
        draft.reasons,
        tuple(_recorded(error, rule) for error, rule in found.recorded),
        tuple(rule.id for rule in found.rules),
    )


def _change(old: FileAttempts, new: FileAttempts) -> FileChange:
    return FileChange(
        new.file_id,
        new.max_attempt if new.max_attempt != old.max_attempt else None,
        new.max_failure if new.max_failure != old.max_failure else None,
        new.ram_mb if new.ram_mb != old.ram_mb else None,
    )


def _forgive(draft: _Draft, system: ErrorClass) -> _Draft:
    files = {
        i: f if f.max_failure is None else replace(f, max_failure=f.max_failure + 1) for i, f in draft.files.items()
    }
    detail = f"{system.error_source} error {system.error_code} was caused by the system, so the failure does not count"
    return replace(
        draft, files=files, reasons=(*draft.reasons, Reason(attempt_refusal_codes.RETRY_SYSTEM_ERROR, detail))
    )


def _spare(draft: _Draft, reason: Reason) -> _Draft:
    """The attempt does not count: another one takes its place, for files that have not had so many already."""
    spared = {
        i: replace(f, max_attempt=f.max_attempt + 1)
        for i, f in draft.files.items()
        if f.max_attempt is not None and f.attempt < MOST_SPARED
    }
    if not spared:
        return draft
    return replace(draft, files={**draft.files, **spared}, reasons=(*draft.reasons, reason))


def _restart(draft: _Draft, job: FailedJob, task: RetryTask, reason: str) -> _Draft:
    """A package that has failed more often for a reason than it is restarted for it gets no other attempt."""
    said = failed(reason, job.history, task.restarts)
    if said.restarts:
        return draft
    files = {
        i: f if f.max_attempt is not None and f.max_attempt <= f.attempt else replace(f, max_attempt=f.attempt)
        for i, f in draft.files.items()
    }
    times, limit = plural(said.history[reason], "time"), plural(task.restarts.get(reason, 0), "restart")
    detail = f"the package has failed {times} ({reason}), and its workflow allows {limit} for that"
    reasons = (*draft.reasons, Reason(attempt_refusal_codes.RETRY_LIMITED, detail))
    return replace(draft, files=files, reasons=reasons)


def _recorded(error: JobError, rule: RetryRule) -> Reason:
    detail = f"retry rule {rule.id} ({rule.action}) matches {error.component} error {error.code} but is not active"
    return Reason(attempt_refusal_codes.RETRY_NOT_APPLICABLE, detail)


def _limit(draft: _Draft, job: FailedJob, task: RetryTask, rule: RetryRule) -> _Draft:
    most = rule.most_attempts
    named = f"{rule.error_source} error {rule.error_code}"
    files: dict[int, FileAttempts] = {}
    for i, f in draft.files.items():
        # Attempts that were made already stay: a limit below them is the same as no more attempts.
        wanted = f.attempt if rule.action == Action.NO_RETRY else max(most, f.attempt)
        files[i] = f if f.max_attempt is not None and f.max_attempt <= wanted else replace(f, max_attempt=wanted)
    if rule.action == Action.NO_RETRY:
        reason = Reason(attempt_refusal_codes.RETRY_NONE, f"{named} is not tried again (retry rule {rule.id})")
    else:
        reason = Reason(
            attempt_refusal_codes.RETRY_LIMITED,
            f"{named} is tried {plural(most, 'time')} at most (retry rule {rule.id})",
        )
    return replace(draft, files=files, reasons=(*draft.reasons, reason))


def _raise_memory(draft: _Draft, job: FailedJob, task: RetryTask, rule: RetryRule) -> _Draft:
    return _with_memory(draft, increase_memory(job.memory, task.memory, task.raised))


def _multiply_memory(draft: _Draft, job: FailedJob, task: RetryTask, rule: RetryRule) -> _Draft:
    return _with_memory(draft, multiply_memory(job.memory, task.memory, task.raised, task.rule))


def _with_memory(draft: _Draft, raised: MemoryRaise) -> _Draft:
    mb, files = raised.file_mb, draft.files
    if mb is not None:
        files = {i: f if (f.ram_mb or 0) >= mb else replace(f, ram_mb=mb) for i, f in files.items()}
    before = draft.task.ram_mb
    task_mb = max(raised.task_mb or 0, before or 0) or None
    return _Draft(files, replace(draft.task, ram_mb=task_mb), draft.reasons + raised.reasons)


def _raise_cpu_time(draft: _Draft, job: FailedJob, task: RetryTask, rule: RetryRule) -> _Draft:
    """More CPU time an event: (wall − base) × power × cores × 1.1 / efficiency / events × 1.5, never less than it was.

    When jobs have finished already, the task's numbers are measured again instead. (The efficiency divides here and
    multiplies in the scouts' formula: a job that was cut off gets a wider margin.)
    """
    if task.merges:
        return _nothing(draft, "merge jobs may run as long as their queue allows, and have no CPU time for each event")
    if task.cpu_time_unit.endswith("Fixed"):
        return _nothing(draft, f"the CPU time of the task is fixed ({task.cpu_time_unit})")
    if task.has_finished:
        reason = Reason(
            attempt_refusal_codes.RETRY_MORE_CPU_TIME, "jobs have finished, so CPU time is measured again from them"
        )
        return replace(draft, task=replace(draft.task, measure_again=True), reasons=(*draft.reasons, reason))
    seconds = job.walltime_s - task.base_walltime_s
    if seconds <= 0 or task.cpu_efficiency_percent <= 0:
        why = f"{job.walltime_s:.0f} s of walltime, of which {task.base_walltime_s} s do not scale"
        return _nothing(draft, f"{why}, efficiency {task.cpu_efficiency_percent} %: nothing to scale CPU time by")
    total = seconds * job.core_power * max(job.memory.cores, 1) * CPU_GROWTH * 100 / task.cpu_efficiency_percent
    value, unit = event_cpu_time(total / max(job.events, 1))
    if task.cpu_time is not None and _hs06s(value, unit) <= _hs06s(task.cpu_time, task.cpu_time_unit):
        return _nothing(draft, f"{value} {unit} would be no more than {task.cpu_time} {task.cpu_time_unit}")
    detail = f"the job ran {job.walltime_s:.0f} s for {plural(max(job.events, 1), 'event')}, so an event counts {value} {unit}"
    reason = Reason(attempt_refusal_codes.RETRY_MORE_CPU_TIME, detail)
    change = replace(draft.task, cpu_time=value, cpu_time_unit=unit)
    return replace(draft, task=change, reasons=(*draft.reasons, reason))


def _hs06s(value: float, unit: str) -> float:
    return value / 1000 if unit.startswith("m") else value


def _reduce_input(draft: _Draft, job: FailedJob, task: RetryTask, rule: RetryRule) -> _Draft:
    """Smaller jobs: from the attempts in `steps` on, a half, a quarter, then 1 of what NG and MF were at first.

    The first values are kept in RM. A task that names neither starts from the splitter's own limit on files.
    """
    if task.merges:
        return _nothing(
            draft, "what merge jobs read is set by nGBPerMergeJob, nFilesPerMergeJob and nEventsPerMergeJob"
        )
    excluded = [code for code in rule.parameters.excluded_rules if code in task.rule]
    if excluded:
        return _nothing(draft, f"the job size is set by {', '.join(excluded)}, so the input is not reduced")
    attempt = max((f.attempt for f in draft.files.values()), default=0)
    half, quarter, one = rule.parameters.steps
    if attempt < half:
        return _nothing(draft, f"input is reduced from attempt {half} on, this was attempt {attempt}")
    divisor = None if attempt >= one else 4 if attempt >= quarter else 2
    first = dict(task.rule.before_retries.values)
    now = {code: value for code in ("NG", "MF") if (value := task.rule.get_int(code))}
    for code, value in (now or {"MF": DEFAULT_MAX_FILES}).items():
        first.setdefault(code, str(value))
    changed, words = task.rule, []
    for code in ("NG", "MF"):
        if code not in first:
            continue
        wanted = 1 if divisor is None else max(int(first[code]) // divisor, 1)
        wanted = min(wanted, now.get(code, wanted))
        changed = changed.having(code, wanted)
        words.append(f"{code}={wanted} instead of {first[code]}")
    changed = changed.having("RM", "|".join(f"{code}:{value}" for code, value in first.items()))
    if changed == task.rule:
        return _nothing(draft, f"input has already been reduced: {', '.join(words)}")
    reason = Reason(
        attempt_refusal_codes.RETRY_LESS_INPUT, f"after {plural(attempt, 'attempt')} jobs read less: {', '.join(words)}"
    )
    return replace(draft, task=replace(draft.task, rule=changed), reasons=(*draft.reasons, reason))


def _nothing(draft: _Draft, detail: str) -> _Draft:
    return replace(draft, reasons=(*draft.reasons, Reason(attempt_refusal_codes.RETRY_NOT_APPLICABLE, detail)))


_EFFECTS: Final[Mapping[Action, Callable[[_Draft, FailedJob, RetryTask, RetryRule], _Draft]]] = MappingProxyType(
    {
        Action.INCREASE_MEMORY: _raise_memory,
        Action.MEMORY_XTIMES: _multiply_memory,
        Action.INCREASE_CPUTIME: _raise_cpu_time,
        Action.REDUCE_INPUT: _reduce_input,
        Action.LIMIT_RETRY: _limit,
        Action.NO_RETRY: _limit,
    }
)
