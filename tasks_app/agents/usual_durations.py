"""How long tasks of a kind usually stay in each state, for the pages of tasks."""

from __future__ import annotations

from datetime import datetime

from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import the_time
from jedisite.vocabulary.words import plural
from tasks_app.counts import usual_stays


@agent("usual_durations", every="1h", title="Measures how long tasks usually stay in each state")
def run(now: datetime | None = None) -> Pass:
    kept = usual_stays.measure(the_time(now))
    return Pass(kept, f"usual times of {plural(kept, 'state')} of kinds of tasks")
