"""The merger: makes the jobs that merge the outputs of a task's jobs, at the site of the files."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from jedisite.agents import troubles
from jedisite.agents.registry import Pass, agent
from jedisite.vocabulary.words import plural
from tasks_app.counts import statistics
from tasks_app.generation.merge_turns import ME, due_tasks, merge_task
from tasks_app.generation.mergejobs import load_heaps

TASKS = 50


@agent("merger", every="3s", title="Creates jobs that merge the outputs of other jobs")
def run(tasks: int = TASKS, now: datetime | None = None) -> Pass:
    """One pass over tasks with files to be merged: those where a merge job can be full, or nothing more comes at a site.

    Only tasks with something to do are locked; merging waits neither for throttling nor for room in queues.
    """
    now = now or timezone.now()
    heaps = load_heaps()
    if not heaps:
        return Pass()
    grid = statistics.current_grid(now)
    due = due_tasks(heaps, grid, now)
    made = troubles.each(ME, due[:tasks], lambda task_id: merge_task(task_id, grid, now))
    return Pass(
        made, f"{plural(made, 'merge job')} of {plural(len(due[:tasks]), 'task')}", made > 0 and len(due) > tasks
    )
