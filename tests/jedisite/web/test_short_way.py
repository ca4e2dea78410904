"""The short way answers as the long one does; only what pages need is not there."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from django.test import RequestFactory
from django.urls import set_script_prefix

from jedisite.web.short_way import Handler
from tasks_app.models import Job

JSON = "application/json"
ACQUIRE, UPDATE = "/api/v1/pilot/acquire_jobs", "/api/v1/pilot/update_job"
ALIVE = json.dumps({"job_id": 1, "job_status": "running", "attempt_nr": 1}).encode()
REQUESTS: dict[str, tuple[int, str, bytes, dict[str, Any]]] = {
    "no jobs": (200, ACQUIRE, b'{"site_name": "NOWHERE"}', {}),
    "a packed body": (200, ACQUIRE, gzip.compress(b'{"site_name": "NOWHERE"}', mtime=0), {}),
    "a form": (200, ACQUIRE, b"site_name=NOWHERE", {"CONTENT_TYPE": ""}),
    "another queue than the token's": (403, ACQUIRE, b'{"site_name": "ELSEWHERE"}', {}),
    "a parameter is missing": (200, ACQUIRE, b"{}", {}),
    "not JSON": (200, UPDATE, b"{", {}),
    "nested deeply": (200, UPDATE, b'{"a":' * 5000, {}),
    "somebody else's job": (403, UPDATE, ALIVE.replace(b"1,", b"99,", 1), {}),
    "too large": (413, UPDATE, b'{"a": "' + b"x" * 11_000_000 + b'"}', {}),
    "in chunks": (411, UPDATE, ALIVE, {"CONTENT_LENGTH": "", "HTTP_TRANSFER_ENCODING": "chunked"}),
    "no token": (401, UPDATE, ALIVE, {"HTTP_AUTHORIZATION": ""}),
    "a bad token": (401, UPDATE, ALIVE, {"HTTP_AUTHORIZATION": "Bearer jedi_none"}),
    "a cookie, no token": (401, UPDATE, ALIVE, {"HTTP_AUTHORIZATION": "", "HTTP_COOKIE": "sessionid=abc"}),
    "another host": (400, UPDATE, ALIVE, {"HTTP_HOST": "evil.example"}),
    "a method that is not answered": (405, UPDATE, b"", {"REQUEST_METHOD": "GET"}),
    "a method that nobody has": (405, UPDATE, b"", {"REQUEST_METHOD": "BREW"}),
    "a slash too many": (404, f"{UPDATE}/", ALIVE, {}),
    "a byte that is not UTF-8": (404, f"{UPDATE}\xff", ALIVE, {}),
    "an address of the long way": (200, "/api/v1/system/is_alive", b"", {"REQUEST_METHOD": "GET"}),
    "below another name": (200, UPDATE, b"{", {"SCRIPT_NAME": "/jedi"}),
}


Answer = tuple[str, dict[str, str], bytes]


def answer(handler: WSGIHandler, token: str, path: str, data: bytes, more: dict[str, Any]) -> Answer:
    """Status, headers and body as a WSGI server gets them."""
    request = RequestFactory().generic("POST", "/", data, JSON)
    environ = request.environ | {"PATH_INFO": path, "HTTP_AUTHORIZATION": f"Bearer {token}"} | more
    got: list[Any] = []
    response: Any = handler(environ, lambda status, headers: got.extend((status, dict(headers))))
    body = b"".join(response)
    response.close()
    return got[0], got[1], body


@pytest.fixture(autouse=True)
def own_name_stays() -> Iterator[None]:
    """A request below another name leaves that name before all addresses that its thread makes afterwards."""
    yield
    set_script_prefix("/")


@pytest.fixture(autouse=True)
def connection_stays() -> Iterator[None]:
    """Between requests the handlers would close the connection, as it is in the test's transaction."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def token(make_token: Callable[..., str]) -> str:
    return make_token("pilot", site="NOWHERE")


@pytest.mark.parametrize("name", REQUESTS)
def test_both_ways_give_the_same_answer(name: str, token: str) -> None:
    status, *request = REQUESTS[name]
    short, long = (answer(handler, token, *request) for handler in (Handler(), WSGIHandler()))
    # The long way opens a session for a cookie, and takes the cookie away when it is of none.
    assert not {"Vary", "Set-Cookie"} & set(short[1])
    for name in ("Vary", "Set-Cookie"):
        long[1].pop(name, None)
    assert short == long
    assert int(short[0].partition(" ")[0]) == status


def test_what_pilots_call_all_the_time_takes_the_short_way() -> None:
    assert {ACQUIRE, UPDATE, "/api/v1/pilot/update_jobs_bulk"} <= set(Handler().short_ways)
    assert all(path.startswith(("/api/v1/", "/server/panda/")) for path in Handler().short_ways)


def test_a_report_by_the_short_way_is_booked(token: str, make_job: Callable[..., Job]) -> None:
    job = make_job(site="NOWHERE", status="sent", attempt=1)
    report = ALIVE.replace(b"1,", f"{job.id},".encode(), 1)
    status, headers, body = answer(Handler(), token, UPDATE, report, {})
    assert (status, json.loads(body)["success"]) == ("200 OK", True)
    assert headers["X-Content-Type-Options"] == "nosniff" and int(headers["Content-Length"]) == len(body)
    job.refresh_from_db()
    assert job.status == "running"


@pytest.mark.parametrize("charset", ["hex", "base64", "utf-7", "utf-16", "idna", "latin-1"])
def test_a_charset_that_a_caller_names_counts_for_nothing(charset: str, token: str) -> None:
    part = '--x\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    body = (part.format("job_id", "1") + part.format("job_status", "ü+2AA-") + "--x--\r\n").encode()
    more = {"CONTENT_TYPE": f"multipart/form-data; Charset={charset}; boundary=x", "QUERY_STRING": "a=%2B2AA-"}
    status, _, said = answer(Handler(), token, UPDATE, body, more)
    assert status == "200 OK" and "ü+2AA-" in json.loads(said)["message"]
    assert answer(Handler(), token, "/api/v1/system/is_alive", b"", more | {"REQUEST_METHOD": "GET"})[0] == "200 OK"
