"""Watchdog: tasks at work are measured anew from their finished jobs: the first ones, and when 5 and 100 have finished."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from django.utils import timezone

from jedisite.agents.passes import owner
from jedisite.agents.registry import Pass, agent
from tasks_app.domain.states import TaskStatus
from tasks_app.lifecycle import claims
from tasks_app.scouts import measuring_again
from tasks_app.scouts.scouting import look_again

ME = "second_look"
LIMIT = 100
MEASURED = (TaskStatus.SCOUTING, TaskStatus.RUNNING)


@agent("second_look", every="30s", title="Measures tasks again as more of their jobs finish")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Ask for a new measurement where enough jobs have finished, and measure what was asked for."""
    if not claims.states_in_use(MEASURED):
        return Pass()
    now = now or timezone.now()
    asked = measuring_again.ask_again()
    claimed = claims.claim_tasks(
        owner(),
        MEASURED,
        limit,
        condition=measuring_again.to_measure(now),
        even_waiting=True,
        agent=ME,
    )
    measured = claims.for_each(claimed, partial(look_again, by=ME, now=now), by=ME)
    return Pass(measured, f"{asked} to be measured again" if asked else "", more=len(claimed) == limit)
