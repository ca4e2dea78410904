"""Libraries: when a build has ended, the jobs that waited for it start, or end with it."""

from __future__ import annotations

from jedisite.agents.registry import Pass, agent
from jedisite.vocabulary.words import plural
from tasks_app.outcomes.libraries import ended_libraries, settle_all

ME = "libraries"
LIMIT = 50


@agent("libraries", every="10s", title="Starts or ends jobs when the build they need has ended")
def run(limit: int = LIMIT) -> Pass:
    """Process the libraries whose build has ended since the last pass."""
    found = ended_libraries(limit)
    jobs = settle_all(found, by=ME)
    return Pass(len(found), f"{plural(jobs, 'job')} waited for them" if found else "", more=len(found) == limit)
