"""Scratch disk of one job. Formulas of the JEDI brokerage document; MB are 2**20 bytes, kB 2**10.

Units of a task's `outDiskUnit`: B, kB, MB, GB, for each MB of input, or with `PerEvent` for each event; `workDiskUnit` is
one of the same without `PerEvent`. `Fixed` at the end only says that scouts never change the value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.skip import Skip

MB: Final = 2**20
LEAST_OUTPUT_MB: Final = 1500
LEAST_WORK_MB: Final = 300

_BYTES: Final = {"B": 1, "kB": 2**10, "MB": MB, "GB": 2**30}
_UNIT: Final = re.compile(r"(B|kB|MB|GB)(PerEvent)?(?:Fixed)?")


@dataclass(frozen=True, slots=True)
class Size:
    """So many bytes, or so many for each event."""

    bytes: int = 0
    per_event: bool = False


def size_of(count: float | None, unit: str | None, *, default: str = "kB") -> Size:
    """The size that a task states; None counts as 0. Raises ValueError for a unit that does not exist."""
    match = _UNIT.fullmatch(unit or default)
    if match is None:
        raise ValueError(f"disk unit {unit!r} is not one of {', '.join(_BYTES)}, with or without PerEvent")
    return Size(int((count or 0) * _BYTES[match[1]]), match[2] is not None)


@dataclass(frozen=True, slots=True)
class Atom:
    """The smallest piece of input that a job can take; of a chunk, the largest such.

    input_mb       files as they are read
    effective_mb   the part that is processed, on which sizes of output depend
    """

    input_mb: float = 0.0
    effective_mb: float = 0.0
    events: int = 0


def output_mb(output: Size, atom: Atom) -> float:
    """Output of a job: for each event, or for each MB of effective input."""
    return output.bytes * (atom.events if output.per_event else atom.effective_mb) / MB


def production_need_mb(atom: Atom, output: Size, work: Size, *, direct_io: bool = False) -> int:
    """Scratch space (MB) of a production job: input + output + work, the latter two not below their floors.

    Input that is read directly takes no space.
    """
    need = max(LEAST_OUTPUT_MB, output_mb(output, atom)) + max(LEAST_WORK_MB, work.bytes / MB)
    return int(need if direct_io else need + atom.input_mb)


def analysis_need_mb(
    atom: Atom, output: Size, work: Size, *, direct_io: bool = False, merging: bool = False, job_size_mb: int = 0
) -> int:
    """Scratch space (MB) of an analysis job: input + output + work, without floors.

    Merge jobs hold what they read and what they write: twice the input. `job_size_mb` is the size that the user wants
    jobs to have (nGBPerJob): a job that copies its input needs that at least, one that reads directly the output of it.
    """
    if merging:
        return int(2 * atom.input_mb)
    need = output_mb(output, atom) + work.bytes / MB
    if not direct_io:
        return int(max(need + atom.input_mb, job_size_mb))
    if job_size_mb and not output.per_event:
        need = max(need, output.bytes * job_size_mb / MB + work.bytes / MB)
    return int(need)


def work_dir_for_job_mb(work_dir_mb: int, site_cores: int, task_cores: int | None) -> float:
    """The part of a slot's scratch space that one job gets: the whole for a multi-core job, which takes all cores of the
    slot, and one core's part for a single-core job.

    `task_cores` None, 0 and 1 are single-core.
    """
    if task_cores is not None and task_cores > 1:
        return float(work_dir_mb)
    return work_dir_mb / max(site_cores, 1)


def lacks_scratch(
    need_mb: int, work_dir_mb: int, site_cores: int, task_cores: int | None, *, whole_slot: bool = False
) -> Skip | None:
    """None when a job's need fits in its part of the slot's scratch space; a space of 0 is no limit.

    `whole_slot`: the job has all of it, whatever its cores.
    """
    if not work_dir_mb:
        return None
    part = work_dir_mb if whole_slot else work_dir_for_job_mb(work_dir_mb, site_cores, task_cores)
    if need_mb <= part:
        return None
    if whole_slot:
        return Skip("", codes.SCRATCH_DISK, "needs {} MB, the site gives {} MB", (need_mb, part))
    says = "needs {} MB, the site gives {:.0f} MB ({} MB in slots of {:core|cores})"
    return Skip("", codes.SCRATCH_DISK, says, (need_mb, part, work_dir_mb, max(site_cores, 1)))
