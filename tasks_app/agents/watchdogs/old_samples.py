"""Watch dog: samples are deleted after their time; those of pairs of site and share, of which there are many, sooner."""

from __future__ import annotations

from datetime import datetime

from jedisite.agents.passes import Pass
from jedisite.database.sql import the_time
from tasks_app.configured import timeouts
from tasks_app.counts import sampling

LIMIT = 100_000


def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    moment = the_time(now)
    before, pairs = moment - timeouts.limit("sample.all"), moment - timeouts.limit("sample.pair")
    deleted = sampling.forget(before, pairs, limit)
    return Pass(deleted, more=deleted >= limit)
