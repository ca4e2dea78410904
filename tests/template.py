"""A pytest plug-in: when several processes run the tests (`-n`), tables are made once, in what new databases are copied from.

Each of the processes has a database of its own, as each benchmark makes one: they migrate it and find nothing to do. So it is
with the server of the test run only; on one that DATABASE_URL names, nothing but their own databases is touched.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

ROOT = Path(__file__).resolve().parent.parent
TEMPLATE = "template1"
LIMIT_S = 300
MIGRATING = pytest.StashKey["subprocess.Popen[bytes]"]()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Begin while the processes that are to run the tests collect them."""
    from jedisite.processes import postgres
    from jedisite.processes.postgres_roles import ROLE

    server = postgres.current()
    if server is None:
        return
    with psycopg.connect(server._url("postgres", superuser=True), autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {TEMPLATE} OWNER TO {ROLE}")
    config.stash[MIGRATING] = subprocess.Popen(
        [sys.executable, "manage.py", "migrate", "--verbosity", "0"],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": server._url(TEMPLATE)},
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any) -> None:
    """Nobody copies it before it is done: no test begins until every process has collected."""
    process = node.config.stash.get(MIGRATING, None)
    if process is not None and process.wait(LIMIT_S):
        pytest.exit(f"the tables could not be made: manage.py migrate ended with {process.returncode}")
