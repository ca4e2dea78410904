"""A connection to the database that is lost: who calls then is told so, and the next one finds a new connection."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection
from django.test import RequestFactory

from jedisite.database.sql import hot_cursor
from jedisite.web.short_way import Handler

pytestmark = pytest.mark.django_db(transaction=True)


def cut() -> None:
    """End this thread's connection from the server's side, as a restart of the server does."""
    assert connection.connection is not None
    info = connection.connection.info
    with psycopg.connect(info.dsn, password=info.password, autocommit=True) as other:
        assert other.execute("SELECT pg_terminate_backend(%s, 20000)", [info.backend_pid]).fetchone() == (True,)


def test_a_hot_call_says_that_the_database_is_lost_and_the_next_one_is_answered(make_token: Callable[..., str]) -> None:
    token, handler = make_token("pilot", site="SITE_A"), Handler()

    def call(path: str, **body: Any) -> tuple[int, Any]:
        request = RequestFactory().generic("POST", path, json.dumps(body), "application/json")
        got: list[str] = []
        environ = request.environ | {"HTTP_AUTHORIZATION": f"Bearer {token}"}
        response: Any = handler(environ, lambda status, headers: got.append(status))
        content = b"".join(response)
        response.close()
        return int(got[0].partition(" ")[0]), json.loads(content) if content[:1] == b"{" else content.decode()

    def report() -> tuple[int, Any]:
        return call("/api/v1/pilot/update_job", job_id=1, job_status="running", attempt_nr=1)

    def old_report() -> int:
        status, said = call("/server/panda/updateJob", jobId=1, state="running", attemptNr=1)
        assert status == 200
        return int(said["StatusCode"])

    assert (report()[0], old_report()) == (403, 60)  # from here on the token is known without a look
    cut()
    status, says = report()
    assert status == 503 and "database" in says
    assert report()[0] == 403
    cut()
    assert [old_report(), old_report()] == [30, 60]


def test_what_goes_wrong_in_a_hot_cursor_is_an_error_of_django() -> None:
    with hot_cursor() as cursor:
        cursor.execute("SELECT 1")
    cut()
    with pytest.raises(OperationalError), hot_cursor() as cursor:
        cursor.execute("SELECT 1")
    assert connection.errors_occurred
    connection.close()
