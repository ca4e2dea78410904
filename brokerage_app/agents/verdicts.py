"""The agent that keeps the books on verdicts: counts of days, and an end for what is old."""

from __future__ import annotations

from brokerage_app.verdicts import records
from jedisite.agents.registry import Pass, agent
from jedisite.vocabulary.words import plural

LIMIT = 2000


@agent("verdicts", every="60s", title="Counts broker decisions and deletes old ones")
def run(limit: int = LIMIT) -> Pass:
    """Fold decisions into the counts of days, and delete what has been kept long enough."""
    counted = records.fold(limit)
    gone = records.forget_old()
    return Pass(
        counted + gone, f"{plural(counted, 'verdict')} counted, {plural(gone, 'row')} deleted", counted == limit
    )
