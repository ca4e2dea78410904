"""Watchdog: jobs that have waited for long for a library whose build has ended are started or ended.

The agent of libraries does so at once; this one finds what it can have missed.
"""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from jedisite.agents.registry import Pass, agent
from jedisite.vocabulary.words import plural
from tasks_app.configured import timeout_limits
from tasks_app.outcomes.libraries import forgotten_libraries, settle_all

ME = "waiting_for_lib"
LIMIT = 50


@agent("waiting_for_lib", every="5m", title="Catches jobs still waiting for a build that has ended")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    found = forgotten_libraries((now or timezone.now()) - timeout_limits.limit("job.waiting_for_lib"), limit)
    moved = settle_all(found, by=ME)
    return Pass(moved, f"of {plural(len(found), 'library', 'libraries')}" if found else "", more=len(found) == limit)
