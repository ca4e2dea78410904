"""Watchdog: samples are deleted after their time; those of pairs of site and share, of which there are many, sooner."""

from __future__ import annotations

from datetime import datetime

from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import the_time
from tasks_app.configured import timeout_limits
from tasks_app.counts import sampling

LIMIT = 100_000


@agent("old_samples", every="1h", title="Deletes old samples")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    moment = the_time(now)
    before, pairs = moment - timeout_limits.limit("sample.all"), moment - timeout_limits.limit("sample.pair")
    deleted = sampling.forget(before, pairs, limit)
    return Pass(deleted, more=deleted >= limit)
