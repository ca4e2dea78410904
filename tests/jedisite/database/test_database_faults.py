"""A database that is away, hangs, is full or busy: every address says so with 503, and no call waits for ever."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction
from django.db.transaction import TransactionManagementError
from django.test import Client, RequestFactory

from jedisite.database import database_limits
from jedisite.database.database_faults import AWAY, BUSY, DISK_FULL, SLOW, fault_of
from jedisite.web.middleware import DatabaseFaults

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def database_down() -> Iterator[None]:
    """Nothing listens where this thread's connection goes; the one that it has is cut off."""
    settings, port = connection.settings_dict, connection.settings_dict["PORT"]
    connection.close()
    settings["PORT"] = "1"
    try:
        yield
    finally:
        connection.close()
        settings["PORT"] = port


@pytest.fixture
def visitor(make_user: Callable[..., User]) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(make_user("root", "administrator"))
    return client


PAGES = ["/", "/tasks/", "/admin/", "/nowhere", "/tokens/", "/tasks/5/why/"]
TEXTS = ["/metrics"]
DOCUMENTS = ["/api/v2/tasks/", "/api/v2/me/"]


def test_pages_say_that_the_database_is_away_and_load_themselves_again(visitor: Client) -> None:
    visitor.cookies["theme"] = "dark"
    with database_down():
        for path in PAGES:
            answer = visitor.get(path)
            said = answer.content.decode()
            assert (answer.status_code, answer["Retry-After"]) == (503, "5"), path
            assert 'http-equiv="refresh" content="5"' in said and 'data-theme="dark"' in said
            assert AWAY.sentence in said and "default-src 'self'" in answer["Content-Security-Policy"]
        sent = visitor.post("/login/", {"username": "root", "password": "x"})
        assert (sent.status_code, sent["Retry-After"]) == (503, "5")
        assert "refresh" not in sent.content.decode() and "send it again" in sent.content.decode()
    assert visitor.get("/tokens/").status_code == 200


def test_programs_get_the_answer_of_their_interface(visitor: Client, make_token: Callable[..., str]) -> None:
    token = {"authorization": f"Bearer {make_token('user')}"}
    with database_down():
        for path in TEXTS:
            answer = visitor.get(path)
            assert (answer.status_code, answer["Retry-After"]) == (503, "5")
            assert answer["Content-Type"] == "text/plain" and answer.content.decode() == f"{AWAY.sentence}\n"
        for path in DOCUMENTS:
            for caller in (visitor, Client(headers=token)):
                answer = caller.get(path)
                assert (answer.status_code, answer["Retry-After"]) == (503, "5"), path
                assert answer["Content-Type"] == "application/problem+json" and answer.json()["detail"] == AWAY.sentence
        answer = Client(headers=token).get("/api/v1/task/get_status?task_id=5")
        assert (answer.status_code, answer["Retry-After"]) == (503, "5") and AWAY.sentence in answer.content.decode()
        answer = visitor.get("/readyz")
        assert (answer.status_code, answer.json()["checks"]) == (503, {"database": "the database does not answer"})


def raises(sql: str) -> Exception:
    with pytest.raises(Exception) as caught, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql)
    return caught.value


def test_a_fault_is_known_by_the_code_of_the_server() -> None:
    assert fault_of(raises("DO $$BEGIN RAISE 'no room' USING ERRCODE = '53100'; END$$")) is DISK_FULL
    assert fault_of(raises("SET LOCAL statement_timeout = 10; SELECT pg_sleep(10)")) is SLOW
    assert fault_of(raises("SELECT pg_terminate_backend(pg_backend_pid())")) is AWAY
    connection.close()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(5)")
        url = connection.connection.info
        with psycopg.connect(url.dsn, password=url.password) as other:
            other.execute("SET lock_timeout = 10")
            with pytest.raises(psycopg.OperationalError) as caught:
                other.execute("SELECT pg_advisory_lock(5)")
        cursor.execute("SELECT pg_advisory_unlock(5)")
    assert fault_of(caught.value) is BUSY
    for bug in (raises("SELECT 1/0"), raises("SELECT nonsense"), ValueError(), None):
        assert fault_of(bug) is None


def test_what_follows_from_a_fault_is_the_same_fault() -> None:
    """A view that goes on after the connection was lost in a transaction gets another kind of error."""

    def view() -> None:
        with transaction.atomic():
            try:
                with transaction.atomic(), connection.cursor() as cursor:
                    cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
            except OperationalError:
                User.objects.count()

    with pytest.raises((TransactionManagementError, OperationalError)) as caught:
        view()
    answer = DatabaseFaults(lambda request: None).process_exception(RequestFactory().get("/"), caught.value)  # type: ignore[arg-type,return-value]
    assert answer is not None and answer.status_code == 503


def test_a_full_disk_is_named(visitor: Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute("""CREATE SCHEMA full_disk; CREATE FUNCTION full_disk.generate_series(int, int) RETURNS SETOF int
            LANGUAGE plpgsql AS $$BEGIN RAISE 'could not extend file' USING ERRCODE = '53100'; END$$;
            SET search_path = full_disk, pg_catalog, public""")
        try:
            answer = visitor.get("/readyz")
        finally:
            cursor.execute("RESET search_path; DROP SCHEMA full_disk CASCADE")
    assert (answer.status_code, answer.json()["checks"]) == (
        503,
        {"database": "ok", "room": "the disk of the database is full"},
    )


def test_a_server_that_hangs_is_given_up() -> None:
    connection.ensure_connection()
    database_limits.watch(connection.connection, 0.5)
    pid = connection.connection.info.backend_pid
    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    try:
        with pytest.raises(OperationalError, match=r"no answer for 0\.5 s"), transaction.atomic():
            User.objects.count()
    finally:
        os.kill(pid, signal.SIGCONT)
    assert 0.4 < time.monotonic() - began < 5
    assert User.objects.count() == 0


@pytest.mark.parametrize(
    ("role", "statement", "lock"), [("web", "10s", "5s"), ("agents", "2min", "30s"), ("commands", "0", "0")]
)
def test_each_kind_of_process_has_its_limits(
    role: database_limits.Role, statement: str, lock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_limits, "_patience_s", 0.0)
    options: dict[str, Any] = connection.settings_dict["OPTIONS"]
    before = dict(options)
    try:
        # As in the web server: what a process was taken for at first counts no more.
        database_limits.use("commands", {**database_limits.DEFAULTS, "commands_statement": 7, "commands_lock": 7})
        database_limits.use(role, database_limits.DEFAULTS)
        connection.close()
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('statement_timeout'), current_setting('lock_timeout')")
            assert cursor.fetchone() == (statement, lock)
        assert ("wait" in vars(connection.connection)) is (role != "commands")
    finally:
        options.clear()
        options.update(before)
        connection.close()


def test_limits_are_set_by_name() -> None:
    assert database_limits.merged({"web_lock": "2.5"}) == {**database_limits.DEFAULTS, "web_lock": 2.5}
    for given, said in (({"web_lok": "1"}, "web_lok; there are connect"), ({"web_lock": "x"}, "web_lock is 'x'")):
        with pytest.raises(ValueError, match=said):
            database_limits.merged(given)
    with pytest.raises(ValueError, match="between 0 and"):
        database_limits.merged({"connect": "-1"})
