"""Behind a proxy that speaks https: what the site says then, asked of a process of its own over HTTP."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
ASK = """
import http.client, json, threading, wsgiref.simple_server
from jedisite.wsgi import application
class Quiet(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, *_): pass
server = wsgiref.simple_server.make_server("127.0.0.1", 0, application, handler_class=Quiet)
threading.Thread(target=server.serve_forever, daemon=True).start()
said = []
for path, headers in json.loads(%r):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    answer.read()
    said.append([answer.status, dict(answer.getheaders())])
    connection.close()
print(json.dumps(said))
"""


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    ours = {k: v for k, v in os.environ.items() if not k.startswith("JEDI_")}
    return {**ours, "JEDI_HOME": str(tmp_path / "home"), "JEDI_LOG_LEVEL": "ERROR", **more}


def asked(tmp_path: Path, *requests: tuple[str, dict[str, str]], **settings: str) -> list[tuple[int, dict[str, Any]]]:
    done = subprocess.run(
        [sys.executable, "-c", ASK % json.dumps(requests)],
        cwd=ROOT,
        env=environment(tmp_path, **settings),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return [(status, headers) for status, headers in json.loads(done.stdout.splitlines()[-1])]


OURS = {"Host": "jedi.example.org"}


def test_behind_https_cookies_are_secure_and_plain_http_is_led_there(tmp_path: Path) -> None:
    secure, plain, health, hot = asked(
        tmp_path,
        ("/login/", {**OURS, "X-Forwarded-Proto": "https"}),
        ("/login/?next=/tasks/", OURS),
        ("/healthz", OURS),
        ("/api/v1/pilot/update_job", {**OURS, "X-Forwarded-Proto": "https"}),
        JEDI_SERVER_URL="https://jedi.example.org",
    )
    assert secure[0] == 200 and "Secure" in secure[1]["Set-Cookie"] and "csrftoken" in secure[1]["Set-Cookie"]
    assert secure[1]["Strict-Transport-Security"] == "max-age=31536000"
    assert (plain[0], plain[1]["Location"]) == (301, "https://jedi.example.org/login/?next=/tasks/")
    assert health[0] == 200
    assert hot[0] in (401, 405) and "Strict-Transport-Security" in hot[1]


def test_the_header_and_what_browsers_are_told_can_be_set(tmp_path: Path) -> None:
    own, other = asked(
        tmp_path,
        ("/login/", {"X-Scheme": "https"}),
        ("/login/", {"X-Forwarded-Proto": "https"}),
        JEDI_HTTPS="1",
        JEDI_HTTPS_HEADER="X-Scheme",
        JEDI_HSTS_S="0",
    )
    assert own[0] == 200 and "Secure" in own[1]["Set-Cookie"] and "Strict-Transport-Security" not in own[1]
    assert other[0] == 301


def test_without_https_nothing_is_changed(tmp_path: Path) -> None:
    [plain] = asked(tmp_path, ("/login/", {}), JEDI_SERVER_URL="http://127.0.0.1:8000")
    assert plain[0] == 200 and "Secure" not in plain[1]["Set-Cookie"]
    assert "Strict-Transport-Security" not in plain[1]


@pytest.mark.django_db
def test_the_check_for_deployment_finds_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "INFO"],
        cwd=ROOT,
        env=environment(tmp_path, JEDI_SERVER_URL="https://jedi.example.org"),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
