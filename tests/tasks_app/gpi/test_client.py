"""The client for scripts: against the site itself, and against a server that is busy, broken or away."""

from __future__ import annotations

import io
import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from tasks_app.gpi import client as module
from tasks_app.gpi.client import (
    ApiError,
    Client,
    Conflict,
    Invalid,
    NotAllowed,
    NotFound,
    Progress,
    SubmissionWarning,
    Unavailable,
)
from tasks_app.models import Task
from tests.flow.pilot import Pilot, drive

DOCS = Path(__file__).resolve().parents[3] / "docs" / "api.md"


@pytest.fixture
def work(books: None) -> Callable[[float], None]:
    """In place of sleeping: agents and a pilot do what there is to do."""
    return lambda seconds: drive(Pilot())


def test_the_example_of_the_documentation_runs(
    live_server: LiveServer,
    make_token: Callable[..., str],
    work: Callable[[float], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert 'Client("http://127.0.0.1:8000")' in example
    monkeypatch.setenv("JEDI_TOKEN", make_token(name="demo"))
    monkeypatch.chdir(tmp_path)
    Task.objects.create(id=7, name="user.demo.rests", status="paused", user="demo", task_type="anal")
    here: dict[str, Any] = {"site": Client(live_server.url, sleep=work)}
    exec(example.replace('Client("http://127.0.0.1:8000")', "site"), here)  # noqa: S102
    Task.objects.filter(id=7).delete()
    said = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"task \d+ registered, 0 of 0 files, no jobs", said[0])
    assert re.fullmatch(r"task \d+ done, 4 of 4 files, 4 finished", said[1])
    assert said[2] == "done ['finished', 'finished', 'finished', 'finished']"
    assert any(line.startswith("user.demo.hello.txt ['hello.") for line in said)
    assert "is done; it has ended; nothing to pause" in said[-3]
    assert "nFilesPerJob" in said[-2] and said[-1].startswith("7 user.demo.rests ")
    assert (tmp_path / "jobs.csv").read_bytes().count(b"\r\n") == 5


def test_what_the_site_warns_of_is_shown_and_kept_and_stands_on_the_page_of_the_task_that_is_done(
    live_server: LiveServer,
    make_token: Callable[..., str],
    task_params: Callable[..., dict[str, Any]],
    books: None,
    api: Any,
) -> None:
    site = Client(live_server.url, make_token(name="ada"))
    said = "Nothing replaces %IN in the command"
    params = task_params(noInput=True, nEvents=1, nEventsPerJob=1)
    made = [item for item in params["jobParameters"] if item.get("param_type") == "output"]
    line = [{"type": "constant", "value": "-- 'cat %IN'"}, *made]
    with pytest.warns(SubmissionWarning, match=said) as shown:
        task = site.submit({**params, "jobParameters": line})
    assert [str(one.message) for one in shown] == list(task.warnings) and len(task.warnings) == 1
    assert shown[0].filename == __file__, "as the fault of the line that submits"
    drive(Pilot())
    why = task.why()["blocked_by"]
    assert task.refresh().status == "done" and why["code"] == "task_done_and_warned", why
    assert said in why["sentence"] and "Nothing needs to be done" not in why["advice"]
    page = api(name="ada").get(f"/tasks/{task.id}/").content.decode()
    assert f"Warning:</strong> {said}" in page


@pytest.mark.filterwarnings("ignore::tasks_app.gpi.client.SubmissionWarning")
def test_tasks_are_submitted_once_listed_commanded_and_waited_for(
    live_server: LiveServer,
    make_token: Callable[..., str],
    work: Callable[[float], None],
    task_params: Callable[..., dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "PAGE", 2)
    site = Client(live_server.url + "/", make_token(), sleep=work)
    first = site.submit(task_params(), key="mine")
    assert site.submit(task_params(), key="mine") == first and first.status == "registered"
    made = [first.id, *(site.submit(task_params(taskName=f"user.ada.{n}")).id for n in range(4))]
    assert [task.id for task in site.tasks(user="ada", ordering="creation_date", status=["registered"])] == made
    assert [task.id for task in site.tasks(created_before=datetime(2020, 1, 1, tzinfo=UTC))] == []
    command = first.kill("no more")
    assert (command["name"], command["comment"], command["status"]) == ("kill", "no more", "waiting")
    seen: list[Progress] = []
    ended = first.wait(on_change=seen.append)
    assert ended.status == "aborted" and [p.status for p in seen] == ["registered", "aborted"]
    assert [entry["status"] for entry in ended.log()][-1] == "registered" and ended.why()["status"] == "aborted"
    with pytest.raises(NotFound) as absent:
        site.task(5)
    assert absent.value.status == 404 and absent.value.title == "Not Found"
    for name, meant in (("user.ada.33", " Did you mean user.ada.3?"), ("hello", "")):
        with pytest.raises(NotFound) as absent:
            site.task(name)
        assert absent.value.detail == f"There is no task of the name {name}.{meant}"
    with pytest.raises(Invalid) as wrong:
        next(site.tasks(stauts="done"))
    assert [(f.field, f.rule) for f in wrong.value.faults] == [("stauts", "known parameter")]
    with pytest.raises(Conflict):
        first.kill()
    with pytest.raises(NotAllowed, match="unknown, expired or revoked"):
        Client(live_server.url, "jedi_nobody").me()
    assert site.me()["name"] == "ada"
    lines = io.BytesIO()
    site.export("tasks", lines, "ndjson", ordering="id")
    assert [json.loads(line)["id"] for line in lines.getvalue().splitlines()] == made


class Script(BaseHTTPRequestHandler):
    """Answers with what stands next in the script, and keeps what was asked."""

    answers: list[tuple[int, dict[str, str], bytes]]
    asked: list[tuple[str, str, dict[str, str], bytes]]

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.asked.append((self.command, self.path, dict(self.headers), self.rfile.read(length)))
        code, headers, body = self.answers.pop(0)
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def script() -> Iterator[Callable[..., tuple[Client, Any, list[float]]]]:
    """A server that answers as it is told: (client, its handler, the waits of the client in seconds)."""
    servers = []

    def make(*answers: Any, **more: Any) -> tuple[Client, Any, list[float]]:
        handler: Any = type("Told", (Script,), {"answers": list(answers), "asked": []})
        server = HTTPServer(("127.0.0.1", 0), handler)
        servers.append((server, threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})))
        servers[-1][1].start()
        waits: list[float] = []
        url = f"http://127.0.0.1:{server.server_port}"
        return Client(url, "secret", sleep=waits.append, **more), handler, waits

    yield make
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


ME = (200, {}, b'{"name": "ada"}')
BUSY = (503, {"Retry-After": "7"}, b"later")


def test_reading_is_tried_again_with_growing_waits(script: Any) -> None:
    site, told, waits = script(BUSY, (429, {}, b"{}"), ME)
    assert site.me() == {"name": "ada"} and len(told.asked) == 3
    assert waits[0] == 7.0 and 1.0 <= waits[1] <= 2.0


def test_tries_end(script: Any) -> None:
    site, _, waits = script(BUSY, BUSY, tries=2)
    with pytest.raises(Unavailable) as refused:
        site.me()
    assert refused.value.status == 503 and len(waits) == 1


def test_a_submission_is_sent_again_under_its_key_and_a_command_is_not(script: Any) -> None:
    task = b'{"id": 5, "name": "x", "status": "registered", "user": "ada"}'
    site, told, _ = script(BUSY, (201, {}, task), BUSY)
    assert site.submit({"taskName": "x"}).id == 5
    keys = [headers["Idempotency-Key"] for _, _, headers, _ in told.asked]
    assert len(keys) == 2 and keys[0] == keys[1]
    with pytest.raises(Unavailable):
        site.command(5, "kill")
    assert len(told.asked) == 3


def test_a_server_that_is_away_is_asked_again() -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        waits: list[float] = []
        site = Client(f"http://127.0.0.1:{taken.getsockname()[1]}", "secret", tries=3, sleep=waits.append)
        with pytest.raises(Unavailable, match="does not answer") as refused:
            site.me()
    assert refused.value.status == 0 and len(waits) == 2


def test_the_token_follows_no_redirect_and_no_foreign_link(script: Any) -> None:
    page = json.dumps({"next": "http://elsewhere.example/api/v2/jobs/?cursor=x", "results": [{"id": 1}]}).encode()
    last = json.dumps({"next": None, "results": [{"id": 2}]}).encode()
    site, told, _ = script((302, {"Location": "http://127.0.0.1:1/"}, b""), (200, {}, page), (200, {}, last))
    with pytest.raises(ApiError) as refused:
        site.me()
    assert refused.value.status == 302
    assert [row["id"] for row in site.jobs(task=5)] == [1, 2]
    assert told.asked[-1][1] == "/api/v2/jobs/?cursor=x" and told.asked[-1][2]["Authorization"] == "Bearer secret"


def test_a_folder_is_sent_as_an_archive(script: Any, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("echo")
    site, told, _ = script((200, {}, b'{"success": true}'), (200, {}, b'{"success": false, "message": "too large"}'))
    name = site.upload(tmp_path)
    method, path, headers, body = told.asked[0]
    assert (method, path) == ("POST", "/api/v1/file_server/upload_cache_file")
    assert f'filename="{name}"'.encode() in body and b"\x1f\x8b" in body and len(body) == int(headers["Content-Length"])
    with pytest.raises(Invalid, match="too large"):
        site.upload(tmp_path)


def test_waiting_ends_at_its_time_or_at_the_state_that_is_wanted(script: Any) -> None:
    row = {"id": 5, "status": "running", "is_final": False, "error_dialog": None, "jobs": {"running": 2}}
    done = {"total": 9, "finished": 3, "failed": 0, "percent": 33}
    answer = (200, {}, json.dumps({**row, "progress": done}).encode())
    now = [0.0]
    site, _, waits = script(
        *[answer] * 5, (200, {}, json.dumps({**row, "name": None, "user": "ada"}).encode()), clock=lambda: now[0]
    )
    site._sleep = lambda seconds: (waits.append(seconds), now.__setitem__(0, now[0] + seconds))
    with pytest.raises(TimeoutError, match="after 4 s: task 5 running, 3 of 9 files, 2 running"):
        site.wait(5, timeout_s=4)
    assert waits == [1.0, 1.5, 1.5]
    assert site.wait(5, until={"running"}).status == "running"


@pytest.mark.parametrize("end", ["", "/", "/api/v2", "/api/v2/", "//api/v2//"])
def test_the_address_may_be_that_of_the_interface(end: str) -> None:
    assert Client(f"https://jedi.example.org{end}", token="x").server == "https://jedi.example.org"


def test_tokens_come_from_the_environment_or_a_file_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("JEDI_TOKEN", raising=False)
    url = "http://127.0.0.1:1"
    assert Client(url)._token is None
    file = tmp_path / "jedi" / "token"
    file.parent.mkdir()
    file.write_text("of-file\n")
    file.chmod(0o644)
    with pytest.raises(PermissionError, match="chmod 600"):
        Client(url)
    file.chmod(0o600)
    assert Client(url)._token == "of-file"
    monkeypatch.setenv("JEDI_TOKEN", "of-environment")
    assert Client(url)._token == "of-environment" and Client(url, "given")._token == "given"
    monkeypatch.delenv("JEDI_SERVER_URL", raising=False)
    with pytest.raises(ValueError, match=r"^the address 127\.0\.0\.1:8811 must begin with http:// or https://$"):
        Client("127.0.0.1:8811")
    for address in (None, "ftp://x"):
        with pytest.raises(ValueError, match="JEDI_SERVER_URL"):
            Client(address)


def test_who_gives_no_token_is_told_where_to_put_one(
    live_server: LiveServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("JEDI_TOKEN", raising=False)
    with pytest.raises(NotAllowed, match=r"`Authorization: Bearer <token>`.* JEDI_TOKEN.*jedi/token"):
        next(Client(live_server.url).tasks())
    with pytest.raises(NotAllowed) as refused:
        next(Client(live_server.url, "wrong").tasks())
    assert "JEDI_TOKEN" not in str(refused.value)


@pytest.mark.parametrize("given", ["jedi_secret\n", "  jedi_secret", "jedi_secret\r\n"])
def test_what_stands_around_a_token_is_no_part_of_it(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JEDI_TOKEN", given)
    for site in (Client("http://127.0.0.1:9", given), Client("http://127.0.0.1:9")):
        assert site._token == "jedi_secret"


@pytest.mark.parametrize("given", ["jedi_sec\nret", "jedi_sec ret", "jedi_sécret", "jedi_sec\x00ret"])
def test_a_broken_token_is_refused_and_not_shown(given: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the token contains") as argument:
        Client("http://127.0.0.1:9", given)
    if "\x00" not in given:  # the environment holds no such
        monkeypatch.setenv("JEDI_TOKEN", given)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "jedi").mkdir()
    (tmp_path / "jedi" / "token").write_text(given)
    (tmp_path / "jedi" / "token").chmod(0o600)
    with pytest.raises(ValueError, match="the token contains") as elsewhere:
        Client("http://127.0.0.1:9")
    assert "sec" not in f"{argument.value!r} {elsewhere.value!r}"
