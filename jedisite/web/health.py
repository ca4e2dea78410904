"""Whether this installation works, for whoever starts, stops and balances processes: open to anybody, and brief.

`/healthz`: this process answers; if not, it is to be started anew. `/readyz`: it can do its work; if not, no request is to
be sent to it. What stands there tells a stranger nothing but that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.db import Error, connection, transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from jedisite.agents.agent_state import is_stuck, rows, standstill
from jedisite.database import database_faults, migrating
from jedisite.identity.callers import Right, needs
from jedisite.models import Agent
from jedisite.vocabulary.words import plural

_migrated = False


@needs(Right.NOTHING)
@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """This process answers. The database is not asked: its loss is mended by starting no process anew."""
    return HttpResponse("ok\n", content_type="text/plain")


@needs(Right.NOTHING)
@require_safe
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """{"ready": bool, "checks": {name: "ok" or what is wrong}}; 503 when something is. What follows a fault is not asked."""
    checks: dict[str, str] = {}
    for name, check in CHECKS.items():
        try:
            checks[name] = check()
        except Error as exc:
            # What the driver says names hosts and accounts.
            fault = database_faults.fault_of(exc)
            checks[name] = SAID.get(fault, "the database does not answer") if fault else "the database refuses a query"
        if checks[name] != OK:
            break
    ready = all(said == OK for said in checks.values())
    return JsonResponse({"ready": ready, "checks": checks}, status=200 if ready else 503)


OK: Final = "ok"


SAID: Final = {
    database_faults.DISK_FULL: "the disk of the database is full",
    database_faults.SLOW: "the database takes too long",
}


def _database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return OK


def _room() -> str:
    """A little sorting on disk: a server whose disk is full answers, and stores nothing."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL work_mem = '64kB'")
        cursor.execute("SELECT count(*) FROM (SELECT n FROM generate_series(1, 10000) n ORDER BY -n OFFSET 0) sorted")
    return OK


def _migrations() -> str:
    """Read once in a process: what has been applied stays so."""
    global _migrated
    if not _migrated:
        if missing := migrating.missing():
            return f"{plural(missing, 'migration has', 'migrations have')} not been applied"
        _migrated = True
    return OK


def _agents() -> str:
    """One agent that is late concerns its own work; when all are that bring work on, nobody runs them. One that is stuck
    keeps a worker."""
    now = timezone.now()
    judged = [row for row in rows(Agent.objects.filter(paused=False), now)]
    stuck = sorted(row.agent.name for row in judged if is_stuck(row.agent, now))
    if stuck:
        return f"passes of {', '.join(stuck)} are stuck"
    still = standstill(judged)
    if still:
        of = f"{len(still)} of {plural(len(judged), 'agent')}"
        return f"all agents that process work ({of}) have been late for more than a minute"
    if judged and all(row.late for row in judged):
        return "the only agent is late" if len(judged) == 1 else f"all {len(judged)} agents are late"
    return OK


CHECKS: Final[dict[str, Callable[[], str]]] = {
    "database": _database,
    "room": _room,
    "migrations": _migrations,
    "agents": _agents,
}
