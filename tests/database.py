"""A pytest plug-in: a throw-away PostgreSQL for the test run, unless DATABASE_URL names a server.

It is loaded before Django reads its settings.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

_home = Path(tempfile.mkdtemp(prefix="jedisite-tests-"))
_home.chmod(0o755)
os.environ["JEDI_HOME"] = str(_home / "home")
for _name in [
    n for n in os.environ if n.startswith("JEDI_") and n not in ("JEDI_HOME", "JEDI_TEST_ALL", "JEDI_POSTGRES_BIN")
]:
    del os.environ[_name]

MIGRATED_HOME = "MIGRATED_HOME"
"""The variable that names a home with a migrated database, for all processes of a test run; see tests/installation.py."""
os.environ.setdefault(MIGRATED_HOME, str(_home / "migrated"))
SUPERUSER = "SUPERUSER_URL"
"""The variable with the address of the server for its superuser, for the few tests that make roles in it."""

# What is compiled is kept, whatever the environment says: hundreds of processes would each compile the whole site.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def _start() -> None:
    import psycopg

    from jedisite.processes import postgres
    from jedisite.processes.postgres_roles import ROLE

    # Nothing of a test run needs to outlive a power cut.
    postgres.ensure(_home / "server", settings={"fsync": "off", "full_page_writes": "off"})
    server = postgres.current()
    if server is not None:
        os.environ["DATABASE_URL"] = server.url
        # Tests empty tables without their triggers, which is not the site's to do.
        os.environ[SUPERUSER] = server._url("postgres", superuser=True)
        with psycopg.connect(os.environ[SUPERUSER], autocommit=True) as connection:
            connection.execute(f"GRANT SET ON PARAMETER session_replication_role TO {ROLE}")


_start()


def pytest_unconfigure(config: pytest.Config) -> None:
    from jedisite.processes import postgres

    server = postgres.current()
    if server is not None:
        server.stop()
    shutil.rmtree(_home, ignore_errors=True)
