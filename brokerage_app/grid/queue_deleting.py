"""Why a queue cannot be deleted: it still has jobs, which no watchdog would handle afterwards.

Jobs and tasks are of other apps, which register what counts theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from jedisite.vocabulary.words import plural


@dataclass(frozen=True, slots=True)
class Held:
    """What a queue has: jobs that have not ended, open tasks that may run at it alone, and those that name others, too."""

    jobs: int = 0
    tasks: int = 0
    shared: int = 0


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
        jobs, bound = sum(one.jobs for one in held), _bound(held)
        if jobs:
            refusals.append(
                f"{name} has {plural(jobs, 'open job')}{f', and {bound}' if bound else ''}. Set it offline "
                "first, and delete it when its jobs have ended; time-outs close those that wait."
            )
        elif bound:
            remarks.append(f"{name} has no open job, but {bound}.")
    return refusals, remarks


def _bound(held: Sequence[Held]) -> str:
    """Which open tasks name a queue, in words; "" when none does."""
    alone, shared = sum(one.tasks for one in held), sum(one.shared for one in held)
    found = []
    if alone:
        found.append(f"{plural(alone, 'open task')} {'is' if alone == 1 else 'are'} bound to it")
    if shared:
        found.append(
            f"{plural(shared, 'open task')} {'names' if shared == 1 else 'name'} it together with other queues"
        )
    return " and ".join(found)
