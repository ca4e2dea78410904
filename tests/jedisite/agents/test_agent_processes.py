"""Agents in real processes: two clusters of django-q2 and two tickers on one database, one of them killed in the middle."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql

from tasks_app.labs.bench.database import drop
from tests.jedisite.probe.apps import PERIOD_S, TABLE
from tests.jedisite.waiting import until

pytestmark = pytest.mark.timeout(600)
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def url() -> Iterator[str]:
    """The address of a database of this test's own, on the server of the test run."""
    name = f"jedisite_agents_{secrets.token_hex(4)}"
    server = os.environ["DATABASE_URL"]
    with psycopg.connect(server, autocommit=True) as keeper:
        keeper.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
        finally:
            drop(keeper, name)


@pytest.fixture
def database(url: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection to that database, migrated, in which only the probe is at work."""
    subprocess.run(command("migrate", "--verbosity", "0"), env=environment(url), cwd=ROOT, check=True, timeout=120)
    with psycopg.connect(url, autocommit=True) as found:
        found.execute(TABLE)
        found.execute("UPDATE agents SET paused = name <> 'probe'")
        found.execute(
            "DELETE FROM agents WHERE name = 'probe'"
        )  # as when a new version that has it starts: tickers give the row
        found.execute("DELETE FROM django_q_schedule WHERE name = 'agent probe'")
        yield found


def command(*arguments: str) -> list[str]:
    return [sys.executable, "manage.py", *arguments]


def environment(url: str) -> dict[str, str]:
    return {
        **os.environ,
        "DATABASE_URL": url,
        "DJANGO_SETTINGS_MODULE": "tests.jedisite.probe.settings",
        "JEDI_WORKERS": "1",
        "JEDI_LOG_LEVEL": "WARNING",
        "PYTHONPATH": str(ROOT),
    }


@contextmanager
def running(url: str, log: Path, *names: str) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """These processes, each in a process group of its own, killed at the end."""
    started: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name in names:
            with (log / f"{name}.log").open("wb") as output:
                started[name] = subprocess.Popen(
                    command(name.split()[0]),
                    env=environment(url),
                    cwd=ROOT,
                    stdout=output,
                    stderr=output,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
        yield started
    finally:
        for process in started.values():
            kill_group(process)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL a process that we started, with all of its children."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)


def value(database: psycopg.Connection[Any], query: str) -> Any:
    row = database.execute(query).fetchone()
    return row[0] if row else None


OVERLAPS = """
SELECT count(*) FROM probe_passes a JOIN probe_passes b ON a.id < b.id AND a.began < coalesce(b.ended, b.began)
   AND b.began < a.ended
"""
ENDED = "SELECT count(*) FROM probe_passes WHERE ended IS NOT NULL"
GROUP_OF_OPEN = "SELECT pid FROM probe_passes WHERE ended IS NULL ORDER BY id DESC LIMIT 1"


def group_at_work(database: psycopg.Connection[Any]) -> int | None:
    """The process group that makes a pass now."""
    pid = value(database, GROUP_OF_OPEN)
    try:
        return os.getpgid(pid) if pid else None
    except ProcessLookupError:
        return None


def test_each_due_pass_runs_once_and_goes_on_after_a_cluster_is_killed_in_the_middle_of_one(
    url: str, database: psycopg.Connection[Any], tmp_path: Path
) -> None:
    with running(url, tmp_path, "qcluster a", "qcluster b", "ticker a", "ticker b") as processes:
        until(lambda: value(database, ENDED) >= 12, "the probe has made its passes")
        clusters = {processes[name].pid: processes[name] for name in ("qcluster a", "qcluster b")}
        at_work: list[int] = []

        def one_is_at_work() -> bool:
            group = group_at_work(database)
            at_work[:] = [group] if group in clusters else []
            return bool(at_work)

        until(one_is_at_work, "a cluster is in the middle of a pass")
        kill_group(clusters[at_work[0]])
        kill_group(processes["ticker a"])
        killed_in_a_pass = value(database, "SELECT count(*) FROM probe_passes WHERE ended IS NULL") > 0
        before = value(database, ENDED)
        until(lambda: value(database, ENDED) >= before + 5, "the other cluster goes on")
    cut_off = value(database, "SELECT count(*) FROM probe_passes WHERE ended IS NULL")
    assert value(database, OVERLAPS) == 0
    # Every lease that was taken is one pass, and every pass that ended was counted once.
    assert value(database, "SELECT fence FROM agents WHERE name = 'probe'") == value(
        database, "SELECT count(*) FROM probe_passes"
    )
    assert abs(value(database, "SELECT passes FROM agents WHERE name = 'probe'") - value(database, ENDED)) <= 1
    # Two tickers do not make an agent run more often than its period says.
    span = value(database, "SELECT extract(epoch FROM max(began) - min(began)) FROM probe_passes")
    assert value(database, "SELECT count(*) FROM probe_passes") <= float(span) / PERIOD_S + 3
    if killed_in_a_pass:
        assert cut_off >= 1


TASK = """
INSERT INTO jedi_tasks (jeditaskid, taskname, status, username, vo, prodsourcelabel, currentpriority, next_check_at)
VALUES (%s, %s, 'registered', 'ada', 'lab', 'user', %s, '2026-01-01')
"""


def test_turns_that_never_end_are_ended_and_named_and_the_other_tasks_have_theirs(
    url: str, database: psycopg.Connection[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JEDI_TURN_S", "1")
    database.execute("UPDATE agents SET paused = name NOT IN ('turns', 'stale_locks')")
    for number, name, priority in ((1, "hangs", 900), (2, "loops", 800), (3, "is quick", 100)):
        database.execute(TASK, [number, name, priority])
    with running(url, tmp_path, "cluster", "ticker"):
        until(
            lambda: value(database, "SELECT errordialog FROM jedi_tasks WHERE jeditaskid = 3") == "had its turn",
            "the third task has its turn",
        )
        said = dict(database.execute("SELECT subject, error FROM agent_troubles WHERE agent = 'turns'").fetchall())
        held = value(database, "SELECT count(*) FROM jedi_tasks WHERE lockedby IS NOT NULL")
    assert said == {
        1: "it took longer than the 1 s that one task may take; its process was killed",
        2: "TurnTooLongError: it took longer than the 1 s that one task may take",
    }
    assert held == 0
