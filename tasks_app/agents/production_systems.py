"""The agent of production systems: takes what they write into T_TASK and PRODSYS_COMM, and writes back what became of it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.db import OperationalError
from django.utils import timezone
from psycopg.errors import LockNotAvailable

from jedisite.agents.registry import Pass, agent
from jedisite.vocabulary.words import plural
from tasks_app.messaging import foreign_sessions, production_systems, role_turns, states_back

LIMIT = 200
MESSAGES = 5000
PATIENCE: Final = timedelta(seconds=3)
"""How long one statement waits for a lock that a production system may have."""


@agent("production_systems", every="5s", title="Serves tables of production systems")
def run(
    limit: int = LIMIT,
    messages: int = MESSAGES,
    now: datetime | None = None,
    longest: timedelta = foreign_sessions.LONGEST,
    for_s: float = role_turns.FOR_EACH_S,
) -> Pass:
    """Serve rows that wait: tasks, commands, and tasks whose check takes long, each kind for `for_s` seconds and a row at least.
    Two of these may run at once: each passes over what the other holds.

    Sessions of production systems that hold locks for `longest` are ended first.
    """
    ended, beyond = foreign_sessions.end_holders(longest), foreign_sessions.out_of_reach()
    notes = [f"ended a session of {role}, which held locks" for role in ended]
    notes += [f"the site cannot end sessions of {role} that hold locks: grant it that role" for role in beyond]
    try:
        with foreign_sessions.impatient(PATIENCE):
            return _serve(limit, messages, now or timezone.now(), for_s, notes)
    except OperationalError as exc:
        if not isinstance(exc.__cause__, LockNotAvailable):
            raise
        return Pass(0, "; ".join([*notes, "another session has what is to be written: it waits"]))


def _serve(limit: int, messages: int, now: datetime, for_s: float, notes: list[str]) -> Pass:
    served, more = role_turns.serve_waiting(limit, now, for_s)
    read, written = states_back.write_states(messages)
    written += states_back.write_answers()
    if refused := [one.row for one in served if one.error]:
        notes.append(f"{plural(len(refused), 'row')} refused: {production_systems.first_of(refused)}")
    if waiting := production_systems.rows_without_account():
        names = production_systems.first_of(production_systems.roles_without_account())
        notes.append(f"{plural(waiting, 'row waits', 'rows wait')} for an account of its role: {names}")
    return Pass(len(served) + written, "; ".join(notes), more=more or read == messages)
