"""Libraries: when a build has ended, the jobs that waited for it start, or end with it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from jedisite.agents import troubles
from jedisite.agents.registry import Pass, agent
from jedisite.vocabulary.words import plural
from tasks_app.outcomes.libraries import ended_libraries, settle

ME = "libraries"
LIMIT = 50


@agent("libraries", every="10s", title="Starts or ends jobs when the build they need has ended")
def run(limit: int = LIMIT) -> Pass:
    """See to the libraries whose build has ended since the last pass."""
    found = ended_libraries(limit)
    jobs = settle_all(found, by=ME)
    return Pass(len(found), f"{plural(jobs, 'job')} waited for them" if found else "", more=len(found) == limit)


def settle_all(found: Iterable[tuple[int, int]], *, by: str) -> int:
    """Settle each (task, dataset); a task for which that fails is left aside for a while. Returns how many jobs moved."""
    datasets = defaultdict(list)
    for task_id, dataset_id in found:
        datasets[task_id].append(dataset_id)

    def work(task_id: int) -> int:
        return sum(settle(task_id, dataset_id, by=by) for dataset_id in datasets[task_id])

    return troubles.each(by, datasets, work)
