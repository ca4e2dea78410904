"""How the memory of a retry and of a whole task is raised after jobs ran out of memory. Pure.

All memory is in MB (2**20 bytes); measured PSS is in kB. A *normalised* value is one that compares with a task's
`ramCount`: for each core with the units `MBPerCore` and `MBPerCoreFixed`, for the whole job with `MB`, without the
base memory and without the nine tenths by which a job's memory is stored.

The ladder and "next rung above max(maxPSS, current)" are the JEDI document's; the order of the checks and the raise
of a whole task are those of the running system.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from brokerage_app.formulas.memory import COMPENSATION_PERCENT, cores_for_typing, is_per_core
from jedisite.vocabulary.words import plural
from tasks_app.domain import attempt_refusal_codes
from tasks_app.domain.reasons import Reason
from tasks_app.params.splitrule import SplitRule

LADDER_MB: Final = (1000, 2000, 3000, 4000, 6000, 8000)
TOP_MB: Final = LADDER_MB[-1]
LEAST_MERGE_MB: Final = 2000
"""Memory of a merge job that nobody has asked or measured, and the least of all."""
TASK_SHARE_PERCENT: Final = 30
"""A whole task gets more memory when the jobs of this share of its input ran out of memory."""


def next_rung(mb: float) -> int | None:
    """The lowest rung (MB) above `mb`; None at the top or beyond."""
    return next((rung for rung in LADDER_MB if rung > mb), None)


@dataclass(frozen=True, slots=True)
class MemoryNeeds:
    """A task's memory columns: `ram` in `unit` (MB, MBPerCore, MBPerCoreFixed), base memory of a job in MB."""

    ram: int
    unit: str = "MBPerCore"
    base_mb: int = 0

    @property
    def fixed(self) -> bool:
        """Whether the value is never changed for the whole task."""
        return self.unit.endswith("Fixed")


@dataclass(frozen=True, slots=True)
class JobMemory:
    """What a failed job had and used.

    stored_mb    `minRamCount` of the job: compensated, base included, for all cores; 0 when unknown
    max_pss_kb   largest memory measured, all processes; None when nothing was measured
    """

    stored_mb: int
    cores: int = 1
    max_pss_kb: int | None = None


@dataclass(frozen=True, slots=True)
class RaisedFiles:
    """Master files of a task whose jobs ran out of memory, all of its master files, and the highest memory of a file."""

    raised: int = 0
    total: int = 0
    highest_mb: int = 0


@dataclass(frozen=True, slots=True)
class MemoryRaise:
    """New memory (normalised, MB) of the job's input files and of the task; None leaves it as it is."""

    file_mb: int | None
    task_mb: int | None
    reasons: tuple[Reason, ...]


def normalised_job_mb(job: JobMemory, needs: MemoryNeeds) -> int:
    """The memory that a job was given, as it compares with the task's `ramCount`, rounded up.

    stored / 0.9 − base, for each core if the unit is per core; never below 0. A job whose memory is unknown had the
    task's. Raises ValueError for an unknown unit.
    """
    if job.stored_mb <= 0:
        return needs.ram
    declared = -(-job.stored_mb * 100 // COMPENSATION_PERCENT)
    return max(_for_unit(declared, job.cores, needs), 0)


def normalised_pss_mb(job: JobMemory, needs: MemoryNeeds) -> int:
    """The memory that a job used, in the same terms; 0 when it was not measured."""
    if not job.max_pss_kb:
        return 0
    return max(_for_unit(-(-job.max_pss_kb // 1024), job.cores, needs), 0)


def _for_unit(job_mb: int, cores: int, needs: MemoryNeeds) -> int:
    without_base = job_mb - needs.base_mb
    return -(-without_base // cores_for_typing(cores)) if is_per_core(needs.unit) else without_base


def increase_memory(job: JobMemory, needs: MemoryNeeds, files: RaisedFiles) -> MemoryRaise:
    """Memory of the next attempt after a job ran out of it: one rung up the ladder, and of the task if 30 % did.

    The rung is the next above max(what the job had, what it used). What a job used beyond the ladder gets the top.
    `files` counts this job's files as well. Raises ValueError for an unknown unit.
    """
    had, used = normalised_job_mb(job, needs), normalised_pss_mb(job, needs)
    if had >= TOP_MB:
        detail = f"the job had {had} MB{_per_core(needs)} already, and {TOP_MB} MB is the maximum"
        return MemoryRaise(None, None, (Reason(attempt_refusal_codes.RETRY_MEMORY_AT_TOP, detail),))
    rung = next_rung(max(had, used)) or TOP_MB
    if needs.ram > rung:
        detail = f"the task gives {needs.ram} MB{_per_core(needs)} already, more than the next step of {rung} MB"
        return MemoryRaise(None, None, (Reason(attempt_refusal_codes.RETRY_NOT_APPLICABLE, detail),))
    measured = f" and used {used} MB" if used else ""
    detail = f"the job had {had} MB{measured}, its inputs get {rung} MB{_per_core(needs)}"
    reasons = [Reason(attempt_refusal_codes.RETRY_MORE_MEMORY, detail)]
    task_mb = None
    if task_is_due(files, needs):
        task_mb = next_rung(max(needs.ram, had, files.highest_mb - 1)) or TOP_MB
        task_mb = task_mb if task_mb > needs.ram else None
    if task_mb:
        reasons.append(_task_reason(files, needs, task_mb))
    return MemoryRaise(rung, task_mb, tuple(reasons))


def multiply_memory(job: JobMemory, needs: MemoryNeeds, files: RaisedFiles, rule: SplitRule) -> MemoryRaise:
    """Memory of the next attempt in steps of the task's own, at most RZ.

    With RX that is the first step, and each further one is RY more: the next above what the job had and used. Without RX
    it is what the job had × (RY / task's memory). RX, RY and RZ are for the whole job, so they are divided by the cores for
    per-core units, but for the factor. Without RX and RY nothing changes. The ladder's top does not bind. Raises ValueError
    for an unknown unit.
    """
    step, most = rule.get_int("RY"), rule.get_int("RZ")
    had = normalised_job_mb(job, needs)
    if (first := rule.get_int("RX")) is not None:
        return _own_step(job, needs, files, first, step, most)
    if not step or needs.ram <= 0 or had <= 0:
        detail = "the task names no step of memory (RY), so the memory stays as it is"
        if step:
            detail = f"neither job ({had} MB) nor task ({needs.ram} MB) gives the memory to start from"
        return MemoryRaise(None, None, (Reason(attempt_refusal_codes.RETRY_NOT_APPLICABLE, detail),))
    target = -(-had * step // needs.ram)
    if most:
        target = min(target, most // (cores_for_typing(job.cores) if is_per_core(needs.unit) else 1))
    if target <= had:
        limit = f", at most {most} MB a job" if most else ""
        detail = f"{had} MB{_per_core(needs)} × {step}/{needs.ram}{limit} gives {target} MB, no more than the job had"
        return MemoryRaise(None, None, (Reason(attempt_refusal_codes.RETRY_MEMORY_AT_TOP, detail),))
    detail = f"the job had {had} MB, its inputs get {target} MB{_per_core(needs)} ({step}/{needs.ram} of it)"
    return _raised(target, detail, needs, files)


def _own_step(
    job: JobMemory, needs: MemoryNeeds, files: RaisedFiles, first: int, step: int | None, most: int | None
) -> MemoryRaise:
    """The next of the task's own steps above what the job had and used; without a step there is only the first."""
    cores = cores_for_typing(job.cores) if is_per_core(needs.unit) else 1
    had = normalised_job_mb(job, needs)
    before = max(had, normalised_pss_mb(job, needs)) * cores
    target = first
    if before >= first:
        target = first + ((before - first) // step + 1) * step if step else first
    target = -(-min(target, most or target) // cores)
    steps = (
        f"{first} MB" + (f" and {step} MB more each time" if step else "") + (f", at most {most} MB" if most else "")
    )
    if target <= had:
        detail = f"the job had {had} MB{_per_core(needs)} already, and the steps of the task for a job are {steps}"
        return MemoryRaise(None, None, (Reason(attempt_refusal_codes.RETRY_MEMORY_AT_TOP, detail),))
    detail = f"the job had {had} MB, its inputs get {target} MB{_per_core(needs)} (the task's steps for a job: {steps})"
    return _raised(target, detail, needs, files)


def _raised(target: int, detail: str, needs: MemoryNeeds, files: RaisedFiles) -> MemoryRaise:
    reasons = [Reason(attempt_refusal_codes.RETRY_MORE_MEMORY, detail)]
    task_mb = target if task_is_due(files, needs) and target > needs.ram else None
    if task_mb:
        reasons.append(_task_reason(files, needs, task_mb))
    return MemoryRaise(target, task_mb, tuple(reasons))


def task_is_due(files: RaisedFiles, needs: MemoryNeeds) -> bool:
    """Whether the whole task gets more memory: 30 % of its input is reached and the unit is not fixed."""
    return not needs.fixed and files.total > 0 and files.raised * 100 >= files.total * TASK_SHARE_PERCENT


def _task_reason(files: RaisedFiles, needs: MemoryNeeds, task_mb: int) -> Reason:
    detail = (
        f"{files.raised} of {plural(files.total, 'input file')} needed more than {needs.ram} MB,"
        f" so the whole task gets {task_mb} MB{_per_core(needs)}"
    )
    return Reason(attempt_refusal_codes.RETRY_TASK_MEMORY, detail)


def _per_core(needs: MemoryNeeds) -> str:
    return " a core" if is_per_core(needs.unit) else ""
