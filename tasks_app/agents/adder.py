"""The adder books the outcomes that pilots reported."""

from __future__ import annotations

from jedisite.agents import Pass, renew_lease
from tasks_app.accounting.outcomes import book_reports

BATCH = 1000
BATCHES = 20


def run() -> Pass:
    """Book reports in batches, one transaction each."""
    items = 0
    for _ in range(BATCHES):
        booked = book_reports(BATCH)
        renew_lease()
        items += booked
        if booked < BATCH:
            return Pass(items)
    return Pass(items, more=True)
