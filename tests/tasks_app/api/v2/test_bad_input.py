"""Hostile and broken requests: always a problem document with a 4xx that says what is wrong, and nothing stored."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client, override_settings
from django.test.client import FakePayload
from django.urls import path
from django.views.decorators.http import require_safe
from hypothesis import given
from hypothesis import strategies as st

from jedisite.server.arrivals import READS_REST
from jedisite.server.bodies import TooSlowError
from jedisite.vocabulary.roles import Scope
from jedisite.web.problems import exception_handler

TASKS = "/api/v2/tasks/"
pytestmark = pytest.mark.django_db
Api = Callable[..., Client]
Counts = Callable[[], dict[str, int]]
PROBLEM = "application/problem+json"

GOOD = (
    b'{"taskName": "user.ada.test", "prodSourceLabel": "user", "noInput": true, "nEvents": 10,'
    b' "jobParameters": [{"type": "constant", "value": "echo"}]'
)


def refused(answer: Any, code: int, field: str | None = None) -> None:
    assert answer.status_code == code, (answer.status_code, answer.content[:500])
    assert answer["Content-Type"] == PROBLEM
    body = json.loads(answer.content)
    assert body["status"] == code and body["title"] and body["detail"]
    if field is not None:
        assert field in [e["field"] for e in body["errors"]], body["errors"][:5]
        assert all(e["rule"] and e["message"] for e in body["errors"])


def test_a_long_form_with_files_is_not_read_where_none_is_taken() -> None:
    class Unreadable(FakePayload):
        def read(self, *args: object, **more: object) -> bytes:
            raise AssertionError("somebody without a login has been waited for")

    client = Client(enforce_csrf_checks=True)
    client.get("/login/")
    form = {"CONTENT_TYPE": "multipart/form-data; boundary=b", "CONTENT_LENGTH": str(10 * 1024 * 1024 + 1)}
    environ = {**form, READS_REST: True, "wsgi.input": Unreadable()}
    answer = client.generic("POST", "/login/", b"", **environ)  # type: ignore[arg-type]
    assert answer.status_code == 413


@pytest.fixture
def nothing_stored(api: Api, rows_stored: Counts) -> Iterator[Client]:
    """A client; afterwards, every table has as many rows as before."""
    client = api()
    before = rows_stored()
    yield client
    assert rows_stored() == before


@pytest.mark.parametrize(
    ("more", "code", "field"),
    [
        (b', "nFilesPerJobb": 1', 422, "nFilesPerJobb"),
        (b', "nFilesPerJob": "many"', 422, "nFilesPerJob"),
        (b', "nFilesPerJob": true', 422, "nFilesPerJob"),
        (b', "nFilesPerJob": 1.5', 422, "nFilesPerJob"),
        (b', "ramCount": -1', 422, "ramCount"),
        (b', "outDiskCount": -5', 422, "outDiskCount"),
        (b', "ramCount": 99999999999999999999999', 422, "ramCount"),
        (b', "vo": "%s"' % (b"v" * 17), 422, "vo"),
        (b', "workingGroup": "%s"' % (b"w" * 1_000_000), 422, "workingGroup"),
        (b', "cliParams": "%s"' % (b"c" * 1_000_001), 422, "cliParams"),
        (b', "goal": NaN', 400, "goal"),
        (b', "goal": -Infinity', 400, "goal"),
        (b', "goal": 1e999', 400, "goal"),
        (b', "goal": 1%s' % (b"0" * 5000), 400, ""),
        (b', "vo": "a\\u0000b"', 400, "vo"),
        (b', "vo": "\\ud800"', 400, "vo"),
        (b', "a\\udc00": 1', 400, "a\\udc00"),
        (b', "nEvents": 11', 400, "nEvents"),
        (b', "mergeSpec": %s1%s' % (b'{"a":' * 50, b"}" * 50), 422, None),
        (b', "mergeSpec": %s1%s' % (b"[" * 10_000, b"]" * 10_000), 400, ""),
        (b', "mergeSpec": %s1%s' % (b"[" * 100, b"]" * 100), 400, None),
        (b', "vo": "\xff"', 400, ""),
        (b', "vo": "x" ', 201, None),
    ],
)
def test_a_bad_submission_is_refused(api: Api, rows_stored: Counts, more: bytes, code: int, field: str | None) -> None:
    client = api()
    before = rows_stored()
    started = time.monotonic()
    answer = client.post(TASKS, GOOD + more + b"}", content_type="application/json")
    assert time.monotonic() - started < 2
    assert len(answer.content) < 100_000
    if code == 201:
        assert answer.status_code == 201
    else:
        refused(answer, code, field)
        assert rows_stored() == before


@pytest.mark.parametrize("spoilt", [b"[]", b'"text"', b"5", b"null", b"true", b"{}"])
def test_a_body_of_another_kind_is_refused(nothing_stored: Client, spoilt: bytes) -> None:
    refused(nothing_stored.post(TASKS, spoilt, content_type="application/json"), 422)


def test_an_empty_body_lacks_its_fields(nothing_stored: Client) -> None:
    refused(nothing_stored.post(TASKS, b"", content_type="application/json"), 422, "taskName")


@pytest.mark.parametrize(
    "spoilt", [b"{", b"{'a': 1}", b"{} {}", b"\xef\xbb\xbf{}", b"nul", b"\x00", b"{,}", b'{"a":1,}']
)
def test_what_is_not_json_is_refused(nothing_stored: Client, spoilt: bytes) -> None:
    refused(nothing_stored.post(TASKS, spoilt, content_type="application/json"), 400, "")


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "multipart/form-data; boundary=x",
        "application/xml",
        "application/jsonx",
        "nonsense",
        "",
        "*/*",
        "; charset=utf-8",
        "application/json2; charset=nothing",
    ],
)
def test_another_content_type_is_refused(nothing_stored: Client, kind: str) -> None:
    refused(nothing_stored.generic("POST", TASKS, GOOD + b"}", content_type=kind), 415, "Content-Type")


def test_an_answer_that_is_not_json_cannot_be_had(nothing_stored: Client) -> None:
    refused(nothing_stored.get(TASKS, headers={"accept": "text/html"}), 406, "Accept")


@pytest.mark.parametrize("packed", ["gzip", "br", "deflate, gzip"])
def test_a_packed_body_is_refused_by_its_header(nothing_stored: Client, packed: str) -> None:
    body = gzip.compress(b"{}")
    answer = nothing_stored.post(TASKS, body, content_type="application/json", headers={"Content-Encoding": packed})
    refused(answer, 415, "Content-Encoding")
    assert packed in json.loads(answer.content)["errors"][0]["message"]


@pytest.mark.parametrize("path", [TASKS, "/api/v2/tokens/"])
def test_eleven_megabytes_are_too_many(nothing_stored: Client, path: str) -> None:
    body = b'{"taskName": "%s"}' % (b"x" * 11_000_000)
    refused(nothing_stored.post(path, body, content_type="application/json"), 413)


@pytest.mark.parametrize(
    "make",
    [lambda: b"[%s1]" % (b"1," * 4_900_000), lambda: b"{%s}" % b",".join(b'"k%d":1' % n for n in range(600_000))],
    ids=["a list", "a dictionary"],
)
def test_many_small_values_are_refused_in_time(nothing_stored: Client, make: Callable[[], bytes]) -> None:
    body = make()
    started = time.monotonic()
    refused(nothing_stored.post(TASKS, body, content_type="application/json"), 422)
    assert time.monotonic() - started < 8


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("stauts=done", "stauts"),
        ("status=odd", "status"),
        ("status=done&status=failed", "status"),
        ("user=%00", "user"),
        ("name=" + "x" * 257, "name"),
        ("parent=x", "parent"),
        ("parent=-1", "parent"),
        ("parent=1.5", "parent"),
        ("parent=9223372036854775808", "parent"),
        ("parent=NaN", "parent"),
        ("created_after=yesterday", "created_after"),
        ("page_size=0", "page_size"),
        ("page_size=-1", "page_size"),
        ("page_size=x", "page_size"),
        ("page_size=" + "9" * 30, "page_size"),
        ("cursor=%00", "cursor"),
        ("cursor=x", "cursor"),
        ("cursor=cD14", "cursor"),
        ("cursor=cD05OTk5OTk5OTk5OTk5OTk5OTk5", "cursor"),
        ("cursor=%C3%A9", "cursor"),
        ("cursor=bz14", "cursor"),
        ("x" * 1000 + "=1", "x" * 100),
    ],
)
def test_a_bad_query_names_the_parameter(nothing_stored: Client, query: str, field: str) -> None:
    refused(nothing_stored.get(f"{TASKS}?{query}"), 422, field)


@pytest.mark.parametrize("value", ["0001-01-01T00:00:00%2B23:59", "9999-12-31T23:59:59-23:59", "2020-01-01"])
def test_times_at_the_edge_are_answered(nothing_stored: Client, value: str) -> None:
    assert nothing_stored.get(f"{TASKS}?created_after={value}").status_code in (200, 422)


@pytest.mark.parametrize(
    "query",
    ["archived=yes", "archived=1", "task=x", "error=%00", "with=1", "changed_after=0001-01-01T00:00:00%2B23:59"],
)
def test_bad_queries_of_jobs(nothing_stored: Client, query: str) -> None:
    refused(nothing_stored.get(f"/api/v2/jobs/?{query}"), 422, query.partition("=")[0])


@pytest.mark.parametrize("error", ["pilot:--5", "pilot:x", "odd:1", ":", "pilot:99999999999999", "trans:\u0663"])
def test_errors_that_do_not_exist_are_those_of_no_job(nothing_stored: Client, error: str) -> None:
    assert nothing_stored.get("/api/v2/jobs/", {"error": error}).json()["results"] == []


def test_a_resource_takes_no_parameters(nothing_stored: Client, make_task: Callable[..., Any]) -> None:
    task = make_task()
    try:
        refused(nothing_stored.get(f"{TASKS}{task.id}/?verbose=1"), 422, "verbose")
    finally:
        task.delete()


@pytest.mark.parametrize(
    "address",
    [
        "tasks/{}/",
        "tasks/{}/params/",
        "tasks/{}/datasets/",
        "tasks/{}/jobs/",
        "tasks/{}/log/",
        "tasks/{}/commands/",
        "jobs/{}/",
        "datasets/{}/files/",
    ],
)
def test_ids_of_nothing_are_not_found(nothing_stored: Client, address: str) -> None:
    for wanted in ("9223372036854775807", "9223372036854775808", "9" * 40, "0", "-1", "x", "1.0", "%00", "1e3"):
        refused(nothing_stored.get(f"/api/v2/{address.format(wanted)}"), 404)


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("tasks/99/", "task 99"),
        ("tasks/99/params/", "task 99"),
        ("tasks/99/jobs/", "task 99"),
        ("tasks/99/why/", "task 99"),
        ("jobs/99/", "job 99"),
        ("datasets/99/", "dataset 99"),
        ("datasets/99/files/", "dataset 99"),
        ("files/99/content", "file 99"),
        ("queues/NOWHERE/", "queue NOWHERE"),
        ("sites/NOWHERE/why/", "queue NOWHERE"),
        ("shares/nope/why/", "share nope"),
        ("agents/nobody/passes/", "agent nobody"),
    ],
)
def test_what_is_not_there_is_named(api: Api, address: str, says: str) -> None:
    answer = api().get(f"/api/v2/{address}")
    assert (answer.status_code, answer.json()["detail"]) == (404, f"There is no {says}.")


@pytest.mark.parametrize("wanted", ["9223372036854775808", "5"])
def test_ids_of_nothing_take_no_commands(nothing_stored: Client, wanted: str) -> None:
    refused(nothing_stored.post(f"{TASKS}{wanted}/commands/", {"command": "kill"}, "application/json"), 404)
    refused(nothing_stored.delete(f"/api/v2/tokens/{wanted}/"), 404)


@pytest.mark.parametrize("method", ["put", "patch", "delete", "trace"])
def test_another_method_is_refused(nothing_stored: Client, method: str) -> None:
    answer = getattr(nothing_stored, method)(TASKS)
    refused(answer, 405)
    assert "GET" in answer["Allow"]


@pytest.mark.parametrize("address", ["/api/", "/api/v2/nothing/", "/api/v2/nothing", "/api/v9/x"])
def test_an_unknown_address_is_a_problem_document(client: Client, address: str) -> None:
    refused(client.get(address), 404)


@pytest.mark.parametrize("address", [TASKS, "/api/v1/task/get_tasks_detailed_info_since", "/metrics"])
@pytest.mark.parametrize(
    ("header", "says"),
    [
        ("", "This needs a token"),
        ("Token X", "begins with 'Token'"),
        ("Bearer", "no token in it"),
        ("Bearer x", "is unknown"),
    ],
)
def test_who_sends_no_token_that_holds_is_told_how_tokens_are_sent(
    client: Client, address: str, header: str, says: str
) -> None:
    answer = client.get(address, headers={"authorization": header} if header else {})
    assert answer.status_code == 401 and says in answer.text
    assert "`Authorization: Bearer <token>`" in answer.text or header == "Bearer x"


@pytest.mark.parametrize("address", ["/api/v2/me/", "/api/v2/schema/"])
@pytest.mark.parametrize("scheme", ["{}", "Token {}", "JWT {}", "Bearer", "Bearer{}"])
def test_a_header_that_is_none_of_ours_is_not_passed_over_where_anybody_may_look(
    make_token: Callable[..., str], address: str, scheme: str
) -> None:
    token = make_token()
    answer = Client(headers={"authorization": scheme.format(token)}).get(address)
    assert answer.status_code == 401 and "`Authorization: Bearer <token>`" in answer.text
    assert answer["WWW-Authenticate"] == "Bearer" and token[:8] not in answer.text


@pytest.mark.parametrize("scheme", ["Basic", "basic", "Digest", "Negotiate", "NTLM"])
def test_what_browsers_send_to_a_proxy_by_themselves_is_passed_over(
    make_user: Callable[..., User], scheme: str
) -> None:
    people = Client(headers={"authorization": f"{scheme} YTpi"})
    assert people.get("/api/v2/me/").json()["roles"] == ["anonymous"]
    people.force_login(make_user("ada"))
    assert people.get("/api/v2/me/").json()["name"] == "ada"


def test_a_token_that_is_too_narrow_is_told_so(make_token: Callable[..., str], task_params: Callable[..., Any]) -> None:
    reader = Client(headers={"authorization": f"Bearer {make_token(scope=Scope.READ)}"})
    answer = reader.post(TASKS, task_params(), content_type="application/json")
    assert answer.status_code == 403
    assert answer.json()["detail"] == "This token's scope is read (look only); this needs the scope all or submit."
    assert "nothing" not in reader.get("/api/v2/me/").json()["rights"]
    pilot = Client(headers={"authorization": f"Bearer {make_token('pilot')}"})
    answer = pilot.post(TASKS, task_params(), content_type="application/json")
    assert answer.status_code == 403 and "your role is pilot" in answer.json()["detail"]


def test_a_key_that_a_body_does_not_take_is_answered_with_those_it_takes(
    nothing_stored: Client, make_task: Callable[..., Any]
) -> None:
    task = make_task(status="done", user="ada")
    try:
        body = {"command": "incexec", "paramaters": {}}
        message = nothing_stored.post(f"{TASKS}{task.id}/commands/", body, "application/json").json()["errors"][0][
            "message"
        ]
        assert message.startswith("'paramaters' is not a field of this body; those are ") and "changes" in message
        for changes, says in (
            ({"nFilesPerJobs": 1}, "Did you mean nFilesPerJob?"),
            (
                {"jobParameters": []},
                "cannot be changed when a task runs again; the parameters that can be changed are ",
            ),
        ):
            body = {"command": "incexec", "changes": changes}
            errors = nothing_stored.post(f"{TASKS}{task.id}/commands/", body, "application/json").json()["errors"]
            assert says in errors[0]["message"]
        answer = nothing_stored.post(f"{TASKS}{task.id}/commands/", {"command": "retry"}, "application/json")
        assert answer.status_code == 409 and answer.json()["detail"].endswith(", run it again with incexec.")
    finally:
        task.delete()


def test_a_bad_token_is_refused(client: Client) -> None:
    for header in ("Bearer nothing", "Bearer jedi_\u00e9", f"Bearer {'x' * 10_000}"):
        answer = client.get(TASKS, headers={"authorization": header})
        refused(answer, 401)
        assert answer["WWW-Authenticate"] == "Bearer"


def test_a_name_that_no_column_takes_only_reads(api: Api, task_params: Callable[..., Any], rows_stored: Counts) -> None:
    client = api(name="x" * 129)
    before = rows_stored()
    refused(client.post(TASKS, task_params(), content_type="application/json"), 403)
    assert client.get(TASKS).status_code == 200
    assert rows_stored() == before


def test_a_database_that_is_away_is_said_to_come_back() -> None:
    answer = exception_handler(OperationalError("connection refused: password"), {"request": None})
    assert answer is not None and answer.status_code == 503 and answer["Retry-After"] == "5"
    assert "password" not in str(answer.data)


def test_a_bad_host_is_refused(client: Client) -> None:
    refused(client.get(TASKS, headers={"host": "evil.example"}), 400)


def crash(request: Any) -> Any:
    raise RuntimeError("a secret of the inside")


urlpatterns = [path("api/safe", require_safe(crash)), path("api/crash", crash), path("crash", crash)]
handler500 = "jedisite.web.problems.server_error"


@override_settings(ROOT_URLCONF=__name__)
def test_views_outside_the_framework_answer_with_problem_documents() -> None:
    client = Client(raise_request_exception=False)
    answer = client.post("/api/safe")
    refused(answer, 405)
    assert answer["Allow"] == "GET, HEAD"
    answer = client.get("/api/crash")
    refused(answer, 500)
    assert b"secret" not in answer.content
    assert client.get("/crash")["Content-Type"].startswith("text/html")


NAMES = st.sampled_from(
    [
        "taskName",
        "prodSourceLabel",
        "noInput",
        "nEvents",
        "jobParameters",
        "log",
        "mergeSpec",
        "vo",
        "userName",
        "goal",
        "taskPriority",
        "architecture",
        "parent_tid",
        "parentTaskName",
        "uniqueTaskName",
        "dsForIN",
        "site",
        "reqID",
    ]
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=40)
    | st.sampled_from(
        ["user", "a\x00b", "\ud800", "${SN}", "%s", "'; DROP TABLE jobs; --", 2**63, -(2**63) - 1, 10**400]
    )
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
BODIES = VALUES | st.dictionaries(NAMES | st.text(max_size=8), VALUES, max_size=6)


def test_any_json_is_answered_without_a_crash(
    api: Api, rows_stored: Counts, make_task: Callable[..., Any], task_params: Callable[..., dict[str, Any]]
) -> None:
    client = api()
    make_task(id=7)
    before = rows_stored()

    @given(
        body=BODIES, merged=st.booleans(), address=st.sampled_from([TASKS, "/api/v2/tokens/", f"{TASKS}7/commands/"])
    )
    def check(body: Any, merged: bool, address: str) -> None:
        nonlocal before
        if merged and isinstance(body, dict):
            body = {**task_params(), **body}
        answer = client.post(address, json.dumps(body), content_type="application/json")
        after = rows_stored()
        if answer.status_code not in (201, 202):
            assert 400 <= answer.status_code < 500 and answer["Content-Type"] == PROBLEM
            assert json.loads(answer.content)["status"] == answer.status_code
            assert after == before
        before = after

    check()


def test_a_spoilt_submission_is_answered_without_a_crash(api: Api, rows_stored: Counts) -> None:
    client = api()
    body = GOOD + b"}"
    before = rows_stored()

    @given(place=st.integers(0, len(GOOD)), piece=st.binary(max_size=6), cut=st.integers(0, 5))
    def check(place: int, piece: bytes, cut: int) -> None:
        nonlocal before
        answer = client.post(TASKS, body[:place] + piece + body[place + cut :], content_type="application/json")
        after = rows_stored()
        if answer.status_code != 201:
            assert answer.status_code in (400, 422) and answer["Content-Type"] == PROBLEM
            assert after == before
        before = after

    check()


@pytest.mark.parametrize(
    "path",
    [
        "/cache/%00",
        "/cache/schedconfig/%00.all.json",
        "/api/v2/queues/%00/",
        "/api/v2/queues/%00/history/",
        "/api/v2/storage/%00/",
        "/api/v2/shares/%00/why/",
        "/api/v2/sites/%00/why/",
        "/sites/%00/why/",
        "/shares/%00/why/",
        "/users/a%00/",
        "/static/%00",
        "/%00",
    ],
)
def test_a_path_with_nul_leads_nowhere(api: Api, path: str) -> None:
    answer = api().get(path)
    assert answer.status_code == 404
    if path.startswith("/api/"):
        refused(answer, 404)


@pytest.mark.parametrize("number", [1001, 899_999])
def test_too_many_tasks_for_one_act_are_refused_by_their_number(nothing_stored: Client, number: int) -> None:
    body = b'{"command": "kill", "reason": "x", "ids": [%s0]}' % (b"0," * (number - 1))
    answer = nothing_stored.post("/api/v2/tasks/bulk-commands/", body, content_type="application/json")
    refused(answer, 422, "ids")
    (fault,) = answer.json()["errors"]
    assert "no more than 1000" in fault["message"]


class BrokenOff:
    """A body that does not come to its end."""

    def read(self, *_: object) -> bytes:
        raise TooSlowError

    readline = read


@pytest.mark.parametrize(
    ("role", "path", "status"),
    [
        ("user", "/api/v2/tasks/", 408),
        ("user", "/api/v1/job/kill", 408),
        ("pilot", "/api/v1/pilot/update_job", 408),
        ("pilot", "/server/panda/updateJob", 200),
    ],
)
def test_a_body_that_breaks_off_is_no_error_of_the_site(api: Api, role: str, path: str, status: int) -> None:
    answer = api(role).generic("POST", path, b"{}", content_type="application/json", **{"wsgi.input": BrokenOff()})  # type: ignore[arg-type]
    assert answer.status_code == status
    assert "arrived too slowly or was cut off" in answer.content.decode()
