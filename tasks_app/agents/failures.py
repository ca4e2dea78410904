"""Counts the jobs that have ended, and groups those that failed by what went wrong."""

from __future__ import annotations

from jedisite.agents.registry import Pass, agent
from tasks_app.failures.booking import book_ends

LIMIT = 5000


@agent("failures", every="5s", title="Counts ended jobs and groups failures by error")
def run(limit: int = LIMIT) -> Pass:
    booked = book_ends(limit)
    return Pass(booked, more=booked == limit)
