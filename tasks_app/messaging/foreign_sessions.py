"""Sessions of the roles of production systems: the site ends those that hold locks for long, so that no agent waits for them.

Whoever may log in to a database can take any advisory lock, and lock a table from which it may delete. Limits on time of a role
are only its defaults, which it may change itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

import structlog
from django.db import connection

log = structlog.get_logger(__name__)
LONGEST: Final = timedelta(seconds=30)
"""How long a transaction of a production system may be open; it writes a row or reads some."""
_ENDED_WITHIN_MS: Final = 2000

# The owner of the tables is the site. It may end sessions of roles that it was granted.
_FOREIGN = """NOT r.rolsuper AND r.rolname <> current_user
   AND (has_table_privilege(r.oid, 't_task', 'INSERT') OR has_table_privilege(r.oid, 'prodsys_comm', 'INSERT'))
   AND NOT pg_has_role(r.oid, (SELECT c.relowner FROM pg_class c WHERE c.oid = 't_task'::regclass), 'MEMBER')"""
_END = f"""
SELECT a.usename, pg_terminate_backend(a.pid, {_ENDED_WITHIN_MS}) FROM pg_stat_activity a JOIN pg_roles r ON r.oid = a.usesysid
 WHERE a.datname = current_database() AND {_FOREIGN} AND pg_has_role(r.oid, 'USAGE')
   AND (a.xact_start <= clock_timestamp() - %s::interval
        OR EXISTS (SELECT 1 FROM pg_locks l WHERE l.pid = a.pid AND l.locktype = 'advisory'))
"""  # noqa: S608 - constants
_OUT_OF_REACH = f"""
SELECT r.rolname FROM pg_roles r WHERE r.rolcanlogin AND {_FOREIGN} AND NOT pg_has_role(r.oid, 'USAGE') ORDER BY 1
"""  # noqa: S608 - constants


def end_holders(longest: timedelta = LONGEST) -> list[str]:
    """End sessions of production systems whose transaction is open for longer, or that have an advisory lock, which is the
    site's to take. Returns their roles."""
    with connection.cursor() as cursor:
        cursor.execute(_END, [f"{longest.total_seconds()} seconds"])
        roles = [str(role) for role, _ in cursor.fetchall()]
    for role in roles:
        log.warning("production_systems.session_ended", role=role)
    return roles


def out_of_reach() -> list[str]:
    """Roles of production systems that the site was not granted, so that it cannot end their sessions."""
    with connection.cursor() as cursor:
        cursor.execute(_OUT_OF_REACH)
        return [role for (role,) in cursor.fetchall()]


@contextmanager
def impatient(limit: timedelta) -> Iterator[None]:
    """Wait for no lock longer than this: then OperationalError is raised."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, false)", [str(int(limit.total_seconds() * 1000))])
    try:
        yield
    finally:
        if connection.is_usable():
            with connection.cursor() as cursor:
                cursor.execute("RESET lock_timeout")
