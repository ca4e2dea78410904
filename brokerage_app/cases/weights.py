"""The parts of a queue's weight for production jobs, as numbers (JEDI brokerage document)."""

from __future__ import annotations

from typing import Final

FEW_RUNNING: Final = 20
"""Below so many running jobs the workers of the batch system count as well, up to this number."""
SPARE: Final = 10
FILES_THAT_HALVE: Final = 100
T1_OF_HEAVY_IO: Final = 4
T1_OF_URGENT: Final = 100
HEAVY_IO_KBPS: Final = 500
URGENT_AT_NUCLEUS: Final = 900


def running_number(running: int, *, batch_jobs: int, slots: int | None, starting: int, cores: int) -> int:
    """The number of running jobs by which a queue is weighed: the largest of those that apply.

    Those are the jobs that run; workers of the batch system, 20 at most, where fewer than that run; the jobs that the
    slots hold which the queue is told to have; and starting jobs where it is told to have none.
    """
    found = running
    if running < FEW_RUNNING and batch_jobs > running:
        found = max(found, min(FEW_RUNNING, batch_jobs))
    if slots is not None:
        found = max(found, slots // max(cores, 1) if slots > 0 else starting)
    return found


def many_assigned(assigned: int, activated: int) -> float:
    """assigned / activated from 1 to 2; 2 when all is only assigned."""
    if not activated:
        return 2.0 if assigned else 1.0
    return min(2.0, max(1.0, assigned / activated))


def input_factor(here_mb: float, total_mb: float, missing_files: int) -> float:
    """(available + total) / (total x (missing files / 100 + 1)); 1 where nothing is read, 2 where all is there."""
    if total_mb <= 0:
        return 1.0
    return (here_mb + total_mb) / (total_mb * (missing_files / FILES_THAT_HALVE + 1))


def nucleus_factor(
    t1_weight: int | None,
    io_intensity: float | None,
    priority: int,
    *,
    scouting: bool,
    event_service: bool,
    bound: bool,
) -> float:
    """By how much queues of the nucleus are preferred.

    What the task says; else 4 where it reads much. At least 100 for urgent tasks and first jobs, unless the work is
    bound to queues or is of the event service.
    """
    if t1_weight:
        factor = float(max(t1_weight, 1))
    else:
        factor = float(T1_OF_HEAVY_IO) if io_intensity is not None and io_intensity >= HEAVY_IO_KBPS else 1.0
    if (priority >= URGENT_AT_NUCLEUS or scouting) and not event_service and not bound:
        return max(factor, float(T1_OF_URGENT))
    return factor
