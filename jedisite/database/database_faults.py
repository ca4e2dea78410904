"""Sentences for people and programs when the database fails.

Each fault is answered with 503 and Retry-After, never with 500.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import psycopg
from django.db import Error, InterfaceError, OperationalError


@dataclass(frozen=True, slots=True)
class Fault:
    """A sentence for people, and the seconds after which to try again."""

    sentence: str
    retry_s: int


AWAY: Final = Fault("The database does not answer; please try again in a moment.", 5)
DISK_FULL: Final = Fault("The disk of the database is full: nothing can be stored until space is freed.", 60)
SLOW: Final = Fault("The database took too long for this request; try again later, or narrow the request.", 10)
BUSY: Final = Fault("Another request is changing the same data; please try again in a moment.", 3)
_BY_STATE: Final = {
    "53100": DISK_FULL,
    "57014": SLOW,  # the time-out of statements
    "55P03": BUSY,  # the time-out of locks
    "40001": BUSY,
    "40P01": BUSY,
}


def fault_of(exc: BaseException | None) -> Fault | None:
    """The database fault behind an exception; None for other exceptions.

    An error that follows from one, such as that of a transaction which can do nothing more, tells of the first.
    """
    while isinstance(exc, Error | psycopg.Error):
        if isinstance(exc, OperationalError | InterfaceError | psycopg.OperationalError | psycopg.InterfaceError):
            return _BY_STATE.get(_state(exc), AWAY)
        exc = exc.__cause__
    return None


def _state(exc: BaseException) -> str:
    found = exc if isinstance(exc, psycopg.Error) else exc.__cause__
    return str(getattr(found, "sqlstate", None) or "")


_OTHER_TABLES: Final = ("42P01", "42703", "3F000")
"""A table, a column or a schema is not there."""


def said_to_operator(exc: BaseException, *, own: bool = False) -> str | None:
    """The message at the terminal when the database fails a command; None for other errors.

    `own`: the database is the embedded one of this home.
    """
    if isinstance(exc, Error) and _state(exc) in _OTHER_TABLES:
        return "The tables of the database are missing or of another version: run `manage.py migrate` (`manage.py up` does)."
    fault = fault_of(exc)
    if fault is None:
        return None
    first = str(exc).strip().partition("\n")[0]
    if fault is AWAY and own:
        return f"The database has stopped together with the site or command that started it: try again ({first})."
    if fault is AWAY:
        return f"The database does not answer: {first}. Start it; without DATABASE_URL the embedded one is started."
    return f"{fault.sentence} ({first})"
