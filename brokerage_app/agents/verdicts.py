"""The agent that counts verdicts by day and deletes old ones."""

from __future__ import annotations

from brokerage_app.verdicts import records
from jedisite.agents.registry import Pass, agent
from jedisite.vocabulary.words import plural

LIMIT = 2000


@agent("verdicts", every="60s", title="Counts broker decisions and deletes old ones")
def run(limit: int = LIMIT) -> Pass:
    """Add decisions to the daily counts, and delete old ones."""
    counted = records.fold(limit)
    gone = records.forget_old()
    return Pass(
        counted + gone, f"{plural(counted, 'verdict')} counted, {plural(gone, 'row')} deleted", counted == limit
    )
