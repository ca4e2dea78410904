"""How PanDA's programs write what they ask: parameters, or a refusal with a sentence, never an error of ours."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from django.core.exceptions import RequestDataTooBig
from django.test import Client, RequestFactory

from tasks_app.api.panda import wire
from tasks_app.api.panda.wire import BadCallError, body_of, moment, query_of

JSON, FORM, NONE = "application/json", "application/x-www-form-urlencoded", ""
PARTS = "multipart/form-data; boundary=xx"
Api = Callable[..., Client]


def packed(data: Any) -> bytes:
    return gzip.compress(json.dumps(data).encode(), mtime=0)


def part(name: str, value: str) -> bytes:
    return f'--xx\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n--xx--\r\n'.encode()


@pytest.mark.parametrize(
    ("kind", "body", "given"),
    [
        (JSON, b'{"a": 1, "b": null, "c": [1], "d": "None"}', {"a": 1, "b": None, "c": [1], "d": "None"}),
        (JSON, packed({"a": 1}), {"a": 1}),
        (NONE, packed({"a": 1}), {"a": 1}),
        (FORM, gzip.compress(b"a=1", mtime=0), {"a": "1"}),
        (NONE, b"a=1&b=x+y%26z&c=%5B1%5D", {"a": "1", "b": "x y&z", "c": "[1]"}),
        (FORM, b"a=None&b=False&c=", {"b": "False", "c": ""}),
        (FORM, b"a=1&a=2&b=3", {"a": ["1", "2"], "b": "3"}),
        (FORM, "a=grüße".encode(), {"a": "grüße"}),
        (FORM, b"a=gr%C3%BC%C3%9Fe", {"a": "grüße"}),
        ("text/plain", b' {"a": 1}', {"a": 1}),
        (NONE, b"", {}),
        (JSON, b"", {}),
        (f"{JSON}; charset=utf-8", b'{"a": "\xc3\xbc"}', {"a": "ü"}),
        (PARTS, b'--xx\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--xx--\r\n', {"a": "1"}),
    ],
)
def test_every_way_in_which_they_write_is_read(kind: str, body: bytes, given: dict[str, Any]) -> None:
    assert body_of(RequestFactory().generic("POST", "/", body, content_type=kind)) == given


@cache
def bomb() -> bytes:
    """Made when a test wants it: each process that collects the tests would make it."""
    return gzip.compress(b" " * 100_000_000, mtime=0)


MANY_PARTS = b"".join(part(f"a{n}", "1")[:-8] for n in range(1100)) + b"--xx--\r\n"
REFUSED = [
    (JSON, b'{"a": 1', "not valid JSON"),
    (JSON, b"[1]", "not a JSON object"),
    (JSON, b'{"a": "\\u0000"}', "a: a text holds the character U+0000"),
    (JSON, b'{"a": {"b": ["\\ud800"]}}', "a.b[0]: a text holds half a surrogate pair"),
    (JSON, b'{"a": NaN}', "a: nan is not a JSON number"),
    (JSON, b'{"a": "\xff"}', "not valid JSON"),
    (JSON, b"a=1", "not valid JSON"),
    (JSON, b"{" * 100_000, "not valid JSON"),
    (JSON, b'{"a":' + b"[" * 100_000, "not valid JSON"),
    (JSON, packed({"a": 1})[:-6], "ends too early"),
    (JSON, packed({"a": 1})[:10] + b"\xff" * 20, "not gzip"),
    (NONE, b"\x1f\x8b", "ends too early"),
    (NONE, b"a=%00", "a: a text holds the character U+0000"),
    (NONE, b"a%00b=1", r"a\x00b: a text holds the character U+0000"),
    (NONE, b"a=%FF", "a: a text is not UTF-8"),
    (NONE, b"a=%ED%A0%80", "a: a text is not UTF-8"),
    (FORM, b"\xff\xfe", "neither a JSON object nor a form"),
    (FORM, b"&".join(b"a%d=1" % n for n in range(2000)), "neither a JSON object nor a form"),
    (NONE, zlib.compress(b'{"a": 1}'), "neither a JSON object nor a form"),
    ("multipart/form-data", b"--xx", "not a multipart form"),
    (PARTS, part("a", "1\x00"), "a: a text holds the character U+0000"),
    (PARTS, part("a\x00b", "1"), "U+0000"),
    (PARTS, MANY_PARTS, "not a multipart form"),
]


@pytest.mark.parametrize(("kind", "body", "says"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_read_is_refused_with_a_sentence(kind: str, body: bytes, says: str) -> None:
    with pytest.raises(BadCallError, match=re.escape(says)):
        body_of(RequestFactory().generic("POST", "/", body, content_type=kind))


def test_a_small_body_that_unpacks_to_a_large_one_is_refused() -> None:
    assert len(bomb()) < 200_000
    with pytest.raises(RequestDataTooBig):
        body_of(RequestFactory().generic("POST", "/", bomb(), content_type=JSON))


@pytest.mark.parametrize(
    ("query", "given"),
    [
        ("a=1&b=None&c=True", {"a": "1", "c": "True"}),
        ("a=input&a=output&b=one", {"a": ["input", "output"], "b": "one"}),
        ("a=x%20y+z", {"a": "x y z"}),
        ("", {}),
    ],
)
def test_queries_are_read(query: str, given: dict[str, Any]) -> None:
    assert query_of(RequestFactory().get(f"/?{query}")) == given


@pytest.mark.django_db
def test_v1_refuses_in_the_envelope_and_legacy_with_a_code(api: Api) -> None:
    """The whole way: status, shape and sentence, whatever the bytes are."""
    user, pilot = api(), api("pilot")
    for kind, body, says in [*REFUSED, (JSON, bomb(), "larger")]:
        v1 = user.generic("POST", "/api/v1/job/kill", body, content_type=kind)
        if body is bomb():
            assert v1.status_code == 413 and says in v1.content.decode()
        else:
            assert v1.status_code == 200 and v1.json()["success"] is False and says in v1.json()["message"]
        old = pilot.generic("POST", "/server/panda/updateJob", body, content_type=kind)
        said = old.json()
        assert (old.status_code, said["StatusCode"]) == (200, 50) and says in said["errorDialog"], body[:50]
    assert user.get("/api/v1/task/get_status?task_id=%00").json()["success"] is False
    assert user.get("/api/v1/task/get_status?task_id=%FF").json()["success"] is False
    many = user.post("/api/v1/job/kill", {"job_ids": [{}] * 200_000}, JSON).json()
    assert "no more than 5500" in many["message"]
    wrong = user.get("/api/v1/job/kill")
    assert wrong.status_code == 405 and "text/plain" in wrong["Content-Type"]


@pytest.mark.django_db
def test_digits_of_other_scripts_and_underscores_are_no_numbers(api: Api) -> None:
    user, pilot = api(), api("pilot")
    for number in ("\u0663", "1_0"):
        said = user.get("/api/v1/task/get_status", {"task_id": number}).json()
        assert not said["success"] and said["message"].startswith("task_id: "), said
        said = pilot.post("/server/panda/updateJob", {"jobId": number, "state": "running", "attemptNr": 1}).json()
        assert (said["StatusCode"], said["errorDialog"]) == (50, f"jobId must be a number, not {number!r}")
        said = pilot.post("/server/panda/getStatus", {"ids": number}).json()
        assert said["StatusCode"] == 50 and said["errorDialog"].startswith("ids: ")
        said = pilot.post("/api/v1/pilot/update_job", {"job_id": number, "job_status": "running"}, JSON).json()
        assert not said["success"] and said["message"].startswith("job_id must be a number")
    assert moment({"at": "\u0662026-01-02 03:04:05"}, "at") is None
    assert moment({"at": "2026-01-02 03:04:05"}, "at") is not None


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("9007199254740993", 2**53 + 1),
        ("9223372036854775807", 2**63 - 1),
        ("9007199254740993.0", 2**53 + 1),
        (" 12 ", 12),
        ("+7.9", 7),
        ("-0.5", 0),
        ("1e3", 1000),
        (12.0, 12),
    ],
)
def test_numbers_are_read_exactly(said: Any, meant: int) -> None:
    assert wire.number({"n": said}, "n") == meant


@pytest.mark.parametrize("said", ["--3", "3-", "1" * 5000, "9223372036854775808", "nan", "1e400", [3], True])
def test_what_is_no_number_of_this_site_is_refused(said: Any) -> None:
    with pytest.raises(BadCallError, match="n must be a number"):
        wire.number({"n": said}, "n")


@pytest.mark.django_db
def test_who_lacks_a_right_is_told_so_in_the_envelope(api: Api) -> None:
    user, pilot = api(), api("pilot", site="SITE_A")
    for answer in (
        user.post("/api/v1/pilot/acquire_jobs", {"site_name": "SITE_A"}, JSON),
        pilot.post("/api/v1/pilot/acquire_jobs", {"site_name": "SITE_B"}, JSON),
        pilot.post("/api/v1/pilot/update_job", {"job_id": 1, "job_status": "running", "attempt_nr": 1}, JSON),
    ):
        assert answer.status_code == 403
        assert (
            answer.json()["success"] is False and answer.json()["data"] is None and len(answer.json()["message"]) > 10
        )
