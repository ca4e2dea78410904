"""What a payload may use, and whether it used more. Pure: the measuring is in gauge.py."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tasks_app.worker_node.pilot.errors import Code, Failure

NO_GRACE = frozenset({Code.EXCEEDED_MAX_MEMORY, Code.WORK_FOLDER_TOO_LARGE})
"""A payload that hurts others is ended at once; one that is ended for another reason may put its things away."""


_OF_QUEUE = "the limit of the queue (maxwdir)"


@dataclass(frozen=True, slots=True)
class Limits:
    """0 means no limit. `disk_is`: whence that of the disk is."""

    memory_mb: int = 0
    wall_s: int = 0
    disk_mb: int = 0
    disk_is: str = "what the job was expected to need"


@dataclass(frozen=True, slots=True)
class Measure:
    """A payload at one moment: resident memory of all its processes, CPU time of all that ever ran, wall time, disk.

    `holes_kb`: what its outputs are longer than the space that they take, and will take in the storage. `unseen`: why there
    may be more in its folder than was counted; so much counts as too much.
    """

    rss_kb: int = 0
    cpu_s: float = 0.0
    wall_s: float = 0.0
    disk_kb: int = 0
    holes_kb: int = 0
    unseen: str = ""


def verdict(measure: Measure, limits: Limits) -> Failure | None:
    """The first limit that the payload has passed, or None. Memory first: it is the one that hurts the neighbours."""
    if limits.memory_mb and measure.rss_kb > limits.memory_mb * 1024:
        used = _rounded_up(measure.rss_kb)
        return Failure(Code.EXCEEDED_MAX_MEMORY, f"The payload used {used} MB, its limit is {limits.memory_mb} MB")
    if limits.disk_mb and measure.disk_kb + measure.holes_kb > limits.disk_mb * 1024:
        held = f"{_rounded_up(measure.disk_kb + measure.holes_kb)} MB"
        if measure.holes_kb:
            held += f", including {_rounded_up(measure.holes_kb)} MB of holes in outputs"
        return Failure(Code.WORK_FOLDER_TOO_LARGE, f"The work folder held {held}, {_disk_limit(limits)}")
    if limits.disk_mb and measure.unseen:
        said = f"The work folder cannot be measured: {measure.unseen}; its limit is {limits.disk_mb} MB"
        return Failure(Code.WORK_FOLDER_TOO_LARGE, said)
    if limits.wall_s and measure.wall_s > limits.wall_s:
        diag = f"The payload ran for {measure.wall_s:.1f} s, its limit is {limits.wall_s} s of wall time"
        return Failure(Code.REACHED_MAX_TIME, diag)
    return None


def memory_limit_mb(job_mb: int, slot_mb: int) -> int:
    """What the job's task declared; when it declared nothing, what the slot gives. Never more than that.

    A job asks for nine tenths of the declared memory, since sites allow a little more than they state.

    The request counts, not the slot: a job that is killed for its memory is tried again with a larger request, and that
    only makes sense when the request is what it was held to.
    """
    declared = -(-job_mb * 10 // 9)
    return min(declared, slot_mb) if declared and slot_mb else declared or slot_mb


def with_disk(limits: Limits, job_mb: int, queue_mb: int, free_mb: int) -> Limits:
    """These limits with one of the disk: what the queue gives, but at most half of what is free here, which others need, too.

    A job may have in any case what it was expected to need; but of a task that states nothing that is a guess.
    """
    most, disk_is = min((queue_mb, _OF_QUEUE), (free_mb // 2, "half of what was free on its disk"))
    if not queue_mb or most <= job_mb:
        return replace(limits, disk_mb=job_mb)
    return replace(limits, disk_mb=most, disk_is=disk_is)


def _disk_limit(limits: Limits) -> str:
    if limits.disk_is == _OF_QUEUE:
        more = "The task needs a queue with more disk, or has to write less at a time"
    else:
        more = "A task can ask for more with workDiskCount, up to the limit of its queue (maxwdir)"
    return f"its limit is {limits.disk_mb} MB, {limits.disk_is}. {more}"


def _rounded_up(kb: int) -> int:
    """MB, never rounded down to the limit that was passed."""
    return -(-kb // 1024)
