"""Tokens of local workers, one for each: good for its queue and that worker only, and for no longer than it lives."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta

from django.db import Error, connections

from jedisite.database.sql import hot_cursor, numbers
from jedisite.identity.callers import end_tokens_of_workers, extend_tokens_of_workers, issue_token, workers_of_tokens
from tasks_app.dispatch.closed_queues import why_closed
from tasks_app.domain.states import JOB_FINAL
from tasks_app.outcomes.left_jobs import fail_jobs_of
from tasks_app.worker_node.submitters.base import NoTokenError, Ticket

log = logging.getLogger(__name__)

NAME = "local workers"
LIFETIME = timedelta(hours=3)
"""From the last renewal. Longer than pilots wait for a site that is away, since nobody can renew meanwhile."""


class OneEach:
    """`walled`: jobs of these workers are to begin with a program that puts walls round them, whose name nobody can guess."""

    def __init__(self, queue: str, *, walled: bool = False) -> None:
        self._queue, self._walled = queue, walled

    def make(self, worker_id: int) -> Ticket:
        begins_with = f"walls_{secrets.token_hex(16)}" if self._walled else ""
        with _database():
            if closed := why_closed(self._queue):
                raise NoTokenError(closed)
            token = issue_token(
                NAME, "pilot", site=self._queue, lifetime=LIFETIME, worker=str(worker_id), begins_with=begins_with
            )
        return Ticket(token, begins_with=begins_with)

    def renew(self, tokens: Collection[str]) -> None:
        with _database():
            extend_tokens_of_workers(tokens, LIFETIME)

    def end(self, tokens: Mapping[str, str]) -> None:
        with _database():
            workers = workers_of_tokens(tokens)
            try:
                left = fail_jobs_of({workers[token]: said for token, said in tokens.items() if token in workers})
            except Error:
                raise
            except Exception:  # their heartbeats end these jobs later; pilots must be started
                log.exception("jobs.not_failed workers=%s", sorted(workers.values()))
            else:
                if left:
                    log.info("jobs.failed count=%d", left)
            end_tokens_of_workers(tokens)

    def killed(self, jobs: Collection[int]) -> Collection[int]:
        # A folder that is kept also names jobs that have ended, which keep the command.
        statement = """SELECT pandaid FROM jobs WHERE pandaid = ANY(%s::bigint[]) AND commandtopilot = 'tobekilled'
                          AND jobstatus <> ALL(%s)"""
        with _database(), hot_cursor() as cursor:
            cursor.execute(statement, [numbers(jobs), sorted(JOB_FINAL)])
            return {job for (job,) in cursor.fetchall()}


@contextmanager
def _database() -> Iterator[None]:
    """Leaves no connection behind: there is nothing to be asked for minutes. Raises NoTokenError."""
    try:
        yield
    except Error as exc:
        raise NoTokenError(f"the database cannot be asked: {exc}".strip()) from exc
    finally:
        connections.close_all()
