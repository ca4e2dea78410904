"""Watchdog: tasks with very many events left get jumbo jobs, those with few left lose them, and the last are hurried."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime

from brokerage_app.grid.configured import configuration
from events_app.jumbo.watched_tasks import ME, WATCHED, take_steps, watched_tasks
from events_app.rules.jumbo_watch import JumboLimits, JumboStep, watch
from jedisite.agents.passes import owner
from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import numbers, the_time
from tasks_app.lifecycle import claims


@agent("jumbo_watch", every="10m", title="Switches jumbo jobs of tasks on and off")
def run(now: datetime | None = None) -> Pass:
    """Look at all tasks with jumbo jobs and at those that may get some, and do what is to be done."""
    now, limits = the_time(now), JumboLimits.from_configuration(configuration())
    steps = defaultdict[int, list[JumboStep]](list)
    for step in watch(watched_tasks(limits, now), limits):
        steps[step.task_id].append(step)
    if not steps:
        return Pass()
    claimed = claims.claim_tasks(
        owner(),
        sorted(WATCHED),
        len(steps),
        condition="t.jeditaskid = ANY(%(ids)s::bigint[])",
        values={"ids": numbers(sorted(steps))},
        even_waiting=True,
        agent=ME,
    )

    def act(task_id: int, fence: int) -> None:
        take_steps(task_id, fence, steps[task_id], limits)

    done = claims.for_each(claimed, act, by=ME)
    return Pass(done)
