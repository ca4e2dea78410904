"""What keeps a queue from being deleted: jobs that are still at it, whom nobody would look after then.

Jobs and tasks are of other apps, which register what counts theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from jedisite.words import plural


@dataclass(frozen=True, slots=True)
class Held:
    """What a queue has: jobs that have not ended, and open tasks that are to run at it alone."""

    jobs: int = 0
    tasks: int = 0


Count = Callable[[Sequence[str]], Mapping[str, Held]]
_COUNTS: Final[list[Count]] = []


def register(count: Count) -> None:
    """Add a function that says what each of some queues has. Called from the `ready()` of an app."""
    _COUNTS.append(count)


def refusals_and_remarks(queues: Sequence[str]) -> tuple[list[str], list[str]]:
    """Sentences on the queues that must not be deleted, and on tasks that would then wait for a queue that is gone."""
    refusals, remarks = [], []
    found = [count(queues) for count in _COUNTS]
    for name in queues:
        held = [counts[name] for counts in found if name in counts]
        jobs, tasks = sum(one.jobs for one in held), sum(one.tasks for one in held)
        bound = f"{plural(tasks, 'open task')} {'is' if tasks == 1 else 'are'} bound to it"
        if jobs:
            refusals.append(
                f"{name} has {plural(jobs, 'open job')}{f', and {bound}' if tasks else ''}. Set it offline "
                "first, and delete it when its jobs have ended; time-outs close those that wait."
            )
        elif tasks:
            remarks.append(f"{name} has no open job, but {bound}.")
    return refusals, remarks
