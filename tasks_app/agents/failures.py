"""Counts the jobs that have ended, and groups those that failed by what went wrong."""

from __future__ import annotations

from jedisite.agents.passes import Pass
from tasks_app.failures.booking import book_ends

LIMIT = 5000


def run(limit: int = LIMIT) -> Pass:
    booked = book_ends(limit)
    return Pass(booked, more=booked == limit)
