"""The API over a real connection, and its schema."""

from __future__ import annotations

import http.client
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from tasks_app.models import Task

TASKS = "/api/v2/tasks/"


def call(
    server: LiveServer, method: str, path: str, token: str = "", body: bytes | None = None
) -> tuple[int, Any, Any]:
    """(status, headers, JSON) of one request."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if body is not None:
        headers["Content-Type"] = "application/json"
    request = urllib.request.Request(server.url + path, body, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers, json.load(answer)
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code, exc.headers, json.load(exc)


@pytest.mark.django_db(transaction=True)
def test_a_script_submits_reads_and_commands(
    live_server: LiveServer, make_token: Callable[..., str], task_params: Callable[..., dict[str, Any]]
) -> None:
    token = make_token()
    status, headers, task = call(live_server, "POST", TASKS, token, json.dumps(task_params()).encode())
    assert status == 201
    assert call(live_server, "GET", headers["Location"], token)[2]["id"] == task["id"]
    status, _, command = call(live_server, "POST", f"{headers['Location']}commands/", token, b'{"command": "kill"}')
    assert (status, command["status"]) == (202, "waiting")
    listed = call(live_server, "GET", f"{TASKS}?user=ada&page_size=1", token)[2]
    assert [row["id"] for row in listed["results"]] == [task["id"]] and listed["next"] is None


@pytest.mark.django_db(transaction=True)
def test_what_is_too_large_gets_its_answer(live_server: LiveServer, make_token: Callable[..., str]) -> None:
    token = make_token()
    status, headers, body = call(live_server, "POST", TASKS, token, b'"%s"' % (b"x" * 11_000_000))
    assert (status, headers["Content-Type"], body["status"]) == (413, "application/problem+json", 413)
    assert call(live_server, "GET", TASKS, "jedi_nobody")[0] == 401
    assert call(live_server, "GET", "/api/v2/nothing/", token)[0] == 404
    assert Task.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_a_body_in_chunks_is_not_taken_for_none(live_server: LiveServer, make_token: Callable[..., str]) -> None:
    for path, kind in ((TASKS, "application/problem+json"), ("/api/v1/task/kill", "text/plain")):
        # In one piece: who refuses it need not wait for the rest, and may have closed the line by then.
        request = (
            f"POST {path} HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {make_token()}\r\nContent-Type: application/json\r\n"
            'Transfer-Encoding: chunked\r\n\r\nb\r\n{"taskName"\r\nf\r\n: "user.ada.t"}\r\n0\r\n\r\n'
        )
        with socket.create_connection((live_server.thread.host, live_server.thread.port), timeout=30) as line:
            line.sendall(request.encode())
            answer = http.client.HTTPResponse(line)
            answer.begin()
            assert (answer.status, answer.headers["Content-Type"]) == (411, kind), path
            assert "use Content-Length, not chunks" in answer.read().decode()


@pytest.mark.django_db(transaction=True)
def test_what_is_too_large_gets_the_answer_of_its_interface(
    live_server: LiveServer, make_token: Callable[..., str]
) -> None:
    token = make_token()
    form = b"name=" + b"x" * 11_000_000

    def send(path: str, body: bytes, sent_token: str, kind: str) -> tuple[int, str, str]:
        headers = {"Authorization": f"Bearer {sent_token}"} if sent_token else {}
        headers |= {"Content-Type": kind, "Cookie": f"csrftoken={'a' * 32}"}
        request = urllib.request.Request(live_server.url + path, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.headers["Content-Type"], answer.read().decode()
        except urllib.error.HTTPError as exc:
            with exc:
                return exc.code, exc.headers["Content-Type"], exc.read().decode()

    urlencoded = "application/x-www-form-urlencoded"
    said = "The request is larger than 10\u202f485\u202f760 bytes."
    for path in ("/api/v1/task/kill", "/api/v1/pilot/update_job"):
        for kind in (urlencoded, "application/json"):
            status, answered, text = send(path, form, make_token("pilot") if "pilot" in path else token, kind)
            assert (status, answered, text) == (413, "text/plain", f"{said}\n"), path
    status, answered, text = send("/server/panda/updateJob", form, make_token("pilot"), urlencoded)
    assert (status, json.loads(text)["StatusCode"], json.loads(text)["errorDialog"]) == (200, 50, said)
    for path in ("/login/", "/tokens/"):
        status, answered, text = send(path, form, "", urlencoded)
        assert (status, said in text, "<h1>Too large</h1>" in text) == (413, True, True), path
    # Refused before anybody has looked at the body.
    assert send("/api/v1/task/kill", form, "jedi_nobody", urlencoded)[0] == 401
    assert send("/nowhere/", form, "", urlencoded)[0] in (404, 413)


def test_the_schema_is_valid_and_complete(tmp_path: Any) -> None:
    call_command("spectacular", "--fail-on-warn", "--validate", file=str(tmp_path / "schema.yml"))


@pytest.mark.django_db
def test_the_schema_and_its_viewer_are_open_to_all(client: Client) -> None:
    schema = client.get("/api/v2/schema/").json()
    submit = schema["paths"]["/api/v2/tasks/"]["post"]
    assert "4XX" in submit["responses"] and {"name": "Idempotency-Key"}.items() <= submit["parameters"][0].items()
    body = submit["requestBody"]["content"]["application/json"]["schema"]
    assert {"taskName", "prodSourceLabel"} <= set(body["required"]) and "nFilesPerJob" in body["properties"]
    page = client.get("/api/docs/")
    assert "css/api_docs" in page.content.decode(), "its dark colours"
    assert page.status_code == 200 and "/static/drf_spectacular_sidecar/" in page.content.decode()
    assert "//cdn" not in page.content.decode()
