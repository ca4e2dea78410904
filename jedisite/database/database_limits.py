"""How long the database may take, by kind of process: no call waits for ever for a server that hangs or a lock that is held.

The server ends statements and waits for locks itself. A server that does not even answer is given up a second later here.
`JEDI_DATABASE_LIMITS` sets the limits by name; 0 is no limit.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from jedisite.vocabulary import given_numbers

if TYPE_CHECKING:
    import psycopg

Role = Literal["web", "agents", "commands"]

DEFAULTS: Final[Mapping[str, float]] = {
    "connect": 3,
    "web_statement": 10,
    "web_lock": 5,
    "agents_statement": 120,
    "agents_lock": 30,
    "commands_statement": 0,
    "commands_lock": 0,
}
"""Seconds. `connect` holds for all; the others for the web server's calls, for agents, and for other commands."""
MARGIN_S = 1.0
_patience_s = 0.0
_given: str | None = None
"""Options that the address of the database brought."""


def merged(given: Mapping[str, str]) -> dict[str, float]:
    """The limits in force. Raises ValueError with a sentence for a name or a number that is none."""
    return given_numbers.merged(given, DEFAULTS, least=0, most=86_400)


def use(role: Role, limits: Mapping[str, float]) -> None:
    """From now on new connections of this process keep the limits of that role, and of no other.

    To be called before the first of them.
    """
    from django.db import connections
    from django.db.backends.signals import connection_created

    global _given, _patience_s
    options = connections.settings["default"]["OPTIONS"]
    if _given is None:
        _given = options.get("options", "")
    parts = [_given] if _given else []
    for name in ("statement", "lock"):
        if limit_s := limits[f"{role}_{name}"]:
            parts.append(f"-c {name}_timeout={round(limit_s * 1000)}")
    options.pop("options", None)
    if parts:
        options["options"] = " ".join(parts)  # the last one of a name counts
    statement_s = limits[f"{role}_statement"]
    _patience_s = statement_s + MARGIN_S if statement_s else 0.0
    connection_created.connect(_on_connection, dispatch_uid="database limits")


def watch(connection: psycopg.Connection[Any], limit_s: float) -> None:
    """From now on each wait for an answer on this connection ends after the limit: OperationalError, and it is closed."""
    import psycopg

    known = weakref.ref(connection)  # the connection is to go when nobody else holds it

    def wait(gen: Any, *args: Any, **more: Any) -> Any:
        here = known()
        assert here is not None
        more.setdefault("timeout", limit_s)
        try:
            return psycopg.Connection.wait(here, gen, *args, **more)
        except psycopg.errors._WaitTimeout:
            if more["timeout"] != limit_s:
                raise
            here.pgconn.finish()
            raise psycopg.OperationalError(f"the database has given no answer for {limit_s:g} s") from None

    connection.wait = wait  # type: ignore[method-assign]


def _on_connection(connection: Any, **_: Any) -> None:
    if _patience_s:
        watch(connection.connection, _patience_s)
