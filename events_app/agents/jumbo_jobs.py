"""Jumbo jobs: those that are missing are made; consumers that wait for them get a queue, or end when nothing is left to do."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from brokerage_app.grid import configured
from brokerage_app.grid.configured import configuration
from events_app.jumbo.jumbo_facts import IN, read_tasks
from events_app.jumbo.jumbo_turns import take_turn
from events_app.jumbo.waiting_consumers import ME
from jedisite.agents.passes import owner
from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import hot_cursor, numbers, the_time
from jedisite.vocabulary.words import plural
from tasks_app.configured import site_limits
from tasks_app.counts import statistics
from tasks_app.generation.grid_view import GridView
from tasks_app.lifecycle import claims


@agent("jumbo_jobs", every="60s", title="Makes jumbo jobs and ends consumers that they replace")
def run(now: datetime | None = None) -> Pass:
    """One pass over the tasks with jumbo jobs."""
    now = the_time(now)
    with hot_cursor() as cursor:
        found = read_tasks(cursor)
    facts = {one.task_id: one for one in found if one.has_work}
    if not facts:
        return Pass()
    configured.forget()
    view = GridView(statistics.current_grid(now), site_limits.as_here(configuration()))
    under_way = Counter(one.work_queue for one in found if one.active)
    claimed = claims.claim_tasks(
        owner(),
        sorted(IN),
        len(facts),
        condition="t.jeditaskid = ANY(%(ids)s::bigint[])",
        values={"ids": numbers(sorted(facts))},
        even_waiting=True,
        agent=ME,
    )
    moved = 0

    def turn(task_id: int, fence: int) -> bool:
        nonlocal moved
        one = facts[task_id]
        done = take_turn(task_id, fence, one, view, under_way[one.work_queue], now)
        moved += done
        return done > 0

    claims.for_each(claimed, turn, by=ME)
    return Pass(moved, f"{plural(moved, 'job')} of {plural(len(claimed), 'task')}")
