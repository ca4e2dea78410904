"""The adder records the outcomes that pilots reported, and applies the task changes that failed jobs require."""

from __future__ import annotations

from datetime import datetime

from jedisite.agents.passes import renew_lease
from jedisite.agents.registry import Pass, agent
from tasks_app.ddm import small_files
from tasks_app.outcomes import away_folders, last_words
from tasks_app.outcomes.final_reports import book_reports, forget_troubles
from tasks_app.retries.task_changes import carry_out

BATCH = 1000
BATCHES = 20


@agent("adder", every="1s", title="Records the results of jobs on files and datasets")
def run(now: datetime | None = None) -> Pass:
    """Record reports in batches, one transaction each. `now` is the time at which expired retry rules are ignored."""
    forget_troubles()
    items = carry_out()
    for _ in range(BATCHES):
        last_words.tell(small_files.last_words)
        away_folders.tell()
        booked = book_reports(BATCH, now)
        renew_lease()
        items += booked
        if booked:
            carry_out()
        if booked < BATCH:
            return Pass(items)
    return Pass(items, more=True)
