"""A database of a benchmark's own, thrown away afterwards, with the ordinary durable settings."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import environ
import psycopg
from django.core.management import call_command
from django.db import ProgrammingError, connection, connections
from psycopg import sql

from jedisite.database import migrating
from jedisite.processes.postgres import EmbeddedServer


@dataclass(frozen=True, slots=True)
class Place:
    """Where a benchmark runs: a folder for files and the address of its database."""

    home: Path
    url: str


@contextmanager
def throw_away() -> Iterator[Place]:
    """Django's connection leads to a new database until the end: on the server that DATABASE_URL names, else on a new one.

    Processes that are started meanwhile inherit the address.
    """
    given = os.environ.get("DATABASE_URL", "")
    with tempfile.TemporaryDirectory(prefix="jedisite-bench-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)  # the server may run as another user
        home = Path(folder) / "home"
        home.mkdir()
        with _on_server(given) if given else _own_server(Path(folder) / "server") as url:
            os.environ["DATABASE_URL"] = url
            _lead_to(url)
            try:
                if migrating.missing():
                    call_command("migrate", interactive=False, verbosity=0)
                yield Place(home, url)
            finally:
                connections.close_all()
                if given:
                    os.environ["DATABASE_URL"] = given
                else:
                    del os.environ["DATABASE_URL"]


@contextmanager
def _own_server(folder: Path) -> Iterator[str]:
    server = EmbeddedServer(folder, say=lambda _: None)
    server.start()
    try:
        yield server.url
    finally:
        server.stop()


@contextmanager
def _on_server(given: str) -> Iterator[str]:
    name = f"jedisite_bench_{secrets.token_hex(4)}"
    with psycopg.connect(given, autocommit=True) as keeper:
        keeper.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield urlunsplit(urlsplit(given)._replace(path=f"/{name}"))
        finally:
            drop(keeper, name)


def drop(keeper: psycopg.Connection[Any], name: str) -> None:
    """Drop a database of ours after ending the connections of ours to it.

    Not with FORCE, which is refused to those who may not end an autovacuum that is at work there; without, the server ends it.
    """
    keeper.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s AND usename = user", [name]
    )
    keeper.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name)))


def _lead_to(url: str) -> None:
    """Point Django at another database."""
    connections.close_all()
    wanted = environ.Env.db_url_config(url)
    for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT"):
        connection.settings_dict[name] = wanted[name]


def empty(*tables: str) -> None:
    """Empty tables, so that each case begins alike."""
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {', '.join(tables)}")
    _to_disk()


def settle(*tables: str, to_disk: bool = False) -> None:
    """Clean and analyse tables that were just filled.

    `to_disk` also ends a checkpoint: the next change of each page is then logged as the whole page.
    """
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"VACUUM ANALYZE {table}")
    if to_disk:
        _to_disk()


def _to_disk() -> None:
    """Write everything out now rather than during the next case; needs a right that not every user has."""
    with suppress(ProgrammingError), connection.cursor() as cursor:
        cursor.execute("CHECKPOINT")
