"""Watch dog: says of tasks at work how often their jobs fail and when they will end."""

from __future__ import annotations

from datetime import datetime

from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import the_time
from tasks_app.domain.states import TASK_GENERATING
from tasks_app.lifecycle import claims
from tasks_app.outcomes.task_progress import book_forecasts


@agent("forecasts", every="5m", title="Predicts when tasks will end")
def run(now: datetime | None = None) -> Pass:
    """One pass, of one statement for all tasks."""
    if not claims.states_in_use(TASK_GENERATING):
        return Pass()
    return Pass(book_forecasts(the_time(now)))
