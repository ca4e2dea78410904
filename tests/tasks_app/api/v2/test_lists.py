"""Every list of the API: its pages in every order, and the same rows as CSV and NDJSON."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, URLResolver, get_resolver
from hypothesis import given
from hypothesis import strategies as st
from pytest_django.live_server_helper import LiveServer

from jedisite.web import exports
from jedisite.web.paging import Order
from tasks_app.api.v2.base import Lists
from tasks_app.models import Task
from tests.plans import assert_uses_an_index, fill_table

Api = Callable[..., Client]
ROWS = 8
TASK = 10_000_001
TIES = "(ARRAY[NULL, 5, 5, NULL, 7])[1 + i % 5]"
WORDS = "(ARRAY[NULL, 'b', 'b', 'a', NULL])[1 + i % 5]"
MOMENT = "timestamptz '2026-01-02 03:04:05.678901+00'"
SOMETIMES = f"CASE WHEN i % 3 = 0 THEN NULL ELSE {MOMENT} + (i % 2) * interval '1 microsecond' END"
TABLES: dict[str, dict[str, str]] = {
    "jedi_tasks": {
        "jeditaskid": "10000000 + i",
        "taskname": WORDS,
        "currentpriority": TIES,
        "username": "'ada'",
        "status": "'running'",
        "creationdate": f"{MOMENT} + (i % 2) * interval '1 day'",
        "errordialog": "'=1+1,\"x\"' || chr(10) || 'ü' || i",
    },
    "jedi_datasets": {"jeditaskid": str(TASK), "datasetname": "'d' || i % 3", "status": "'ready'", "type": "'input'"},
    "jedi_dataset_contents": {
        "jeditaskid": str(TASK),
        "datasetid": "(SELECT min(datasetid) FROM jedi_datasets)",
        "lfn": "'same'",
        "status": "'ready'",
        "type": "'input'",
    },
    "jedi_events": {
        "jeditaskid": str(TASK),
        "pandaid": "5",
        "fileid": "1",
        "job_processid": "i",
        "def_min_eventid": "i",
        "def_max_eventid": "i",
        "attemptnr": "i % 2",
    },
    "jobs": {"pandaid": "i", "jeditaskid": str(TASK), "jobstatus": "'failed'", "piloterrordiag": "'-' || i"},
    "jobs_archive": {
        "pandaid": "100 + i",
        "jeditaskid": str(TASK),
        "jobstatus": "'failed'",
        "modificationtime": "now()",
    },
    "job_files": {"pandaid": "1", "lfn": "'@f' || i", "type": "'input'"},
    "jobs_statuslog": {"pandaid": "1", "jobstatus": "'sent'"},
    "jedi_job_retry_history": {"jeditaskid": str(TASK)},
    "tasks_statuslog": {"jeditaskid": str(TASK), "status": "'ready'"},
    "task_commands": {
        "comm_task": str(TASK),
        "comm_cmd": "'kill'",
        "comm_owner": "'ada'",
        "comm_parameters": "'{\"a\": [1]}'",
    },
    "verdicts": {"jeditaskid": str(TASK), "chosen": "'[[\"S\", 1.5]]'"},
    "queues": {
        "status": "'online'",
        "type": "'unified'",
        "site_name": "'S' || i % 3",
        "core_count": "1",
        "min_memory_mb": "0",
    },
    "queue_status_log": {"queue": "'feeder'", "new": "'online'", "at": MOMENT, "ended_at": MOMENT},
    "storage_endpoints": {"site_name": "'S' || i % 3", "space_free_gb": f"{TIES} + 0.25"},
    "jedi_work_queue": {"queue_order": "CASE WHEN i % 2 = 0 THEN i END"},
    "harvester_workers": {"harvesterid": "'h'", "workerid": "i", "computingsite": "'SITE_A'", "status": "'running'"},
    "attention_items": {"key": "i::text", "tone": "'bad'", "size": "i", "rank": "i"},
    "samples": {"site": "'Q' || i", "gshare": "''", "at": MOMENT, "finished": "0", "failed": "0", "wasted_core_s": "0"},
    "sandboxes": {"owner": "'ada'", "sha256": "'0'", "stored": "'f' || i"},
    "audit_entries": {"object_type": "'task'", "details": "'{\"changed\": [1]}'"},
    "agent_passes": {"agent": "'feeder'", "error": "'x' || chr(10) || 'ValueError: ' || i"},
    "error_fingerprints": {
        "code": "i::text",
        "text": "'=' || i",
        "category": "'payload'",
        "first_seen": MOMENT,
        "last_seen": MOMENT,
    },
    "job_failures": {"pandaid": "i", "fingerprint_id": "(SELECT min(id) FROM error_fingerprints)", "ended": MOMENT},
    "transfer_rules": {
        "kind": "'copy'",
        "status": "'queued'",
        "destination": "'DISK'",
        "jeditaskid": TIES,
        "files": "1",
    },
    "transfer_requests": {
        "rule_id": "(SELECT min(id) FROM transfer_rules)",
        "lfn": "'f' || i",
        "status": "'queued'",
        "bytes": "i",
        "destination": "'DISK'",
    },
    "workflows": {"owner": "'ada'", "name": "'w' || i"},
    "workflow_packages": {
        "workflow_id": "(SELECT min(id) FROM workflows)",
        "path": "'001/00' || i || '/001'",
        "software": "'A'",
        "is_canceled": "i % 2 = 0",
        "is_held": "i % 2 = 1",
        "priority": "i",
    },
    "messages_out": {"username": "'ada'", "position": "i", "topic": "'jedi.tasks'"},
}
NEEDED = {"files/": {"lfn": "same"}}
"""Parameters that a list cannot do without."""
LONG = {"agents/": "25"}
"""Rows of a page of a list that is longer than the others."""


@pytest.fixture
def rows(db: None) -> None:
    """Rows for every list, with values that are equal or missing."""
    fill_table("agents", ROWS, name="'agent' || i", last_ended_at=SOMETIMES)
    for table, expressions in TABLES.items():
        fill_table(table, ROWS, **expressions)


def addressed(resolver: URLResolver) -> Iterator[URLPattern]:
    """All addresses behind the root: the apps' lists stand in their own files of addresses."""
    for entry in resolver.url_patterns:
        if isinstance(entry, URLPattern):
            yield entry
        elif not str(entry.pattern):
            yield from addressed(entry)


def lists() -> Iterator[tuple[str, type[Any]]]:
    """(address behind /api/v2/, view) of every list."""
    for entry in addressed(get_resolver()):
        view = getattr(entry.callback, "cls", None)
        if view and issubclass(view, Lists) and "list" in entry.callback.actions.values():
            path = str(entry.pattern).removeprefix("api/v2/")
            with connection.cursor() as cursor:
                cursor.execute("SELECT min(datasetid) FROM jedi_datasets")
                (dataset,) = cursor.fetchone()
                cursor.execute("SELECT min(id) FROM workflows")
                (workflow,) = cursor.fetchone()
            numbers = {"task_id": TASK, "dataset_id": dataset, "job_id": 1, "workflow_id": workflow}
            for name, value in (*numbers.items(), ("name", "feeder")):
                path = re.sub(rf"<\w+:{name}>", str(value), path)
            yield path, view


def walk(client: Client, path: str, parameters: dict[str, str]) -> list[dict[str, Any]]:
    """All rows, page by page, first forwards and then back again."""
    answer = client.get(f"/api/v2/{path}", {**parameters, "page_size": LONG.get(path, "3")})
    assert answer.status_code == 200, (path, answer.content)
    pages = [answer.json()]
    assert pages[0]["previous"] is None
    while url := pages[-1]["next"]:
        assert len(pages) < 100, path
        pages.append(client.get(url).json())
    back = pages[-1]
    for page in reversed(pages[:-1]):
        back = client.get(back["previous"]).json()
        assert back["results"] == page["results"], path
    assert back["previous"] is None
    return [row for page in pages for row in page["results"]]


def above(value: Any) -> tuple[bool, Any]:
    """Where a value stands: none is the highest."""
    return (value is None, "" if value is None else value)


def test_every_list_has_each_row_once_in_every_order_and_form(api: Api, rows: None) -> None:
    client, seen = api(), dict[str, int]()
    for path, view in lists():
        paginator = view.pagination_class()
        for text in paginator.choices(view):
            asked = {**NEEDED.get(path, {}), "ordering": text}
            found = walk(client, path, asked)
            texts = [json.dumps(row, sort_keys=True) for row in found]
            assert len(set(texts)) == len(texts), (path, text)
            name = text.removeprefix("-")
            placed = [above(row.get(name, row.get("id"))) for row in found]
            assert placed == sorted(placed, reverse=text.startswith("-")), (path, text)
        assert [json.loads(line) for line in whole(client, path, asked, "ndjson").splitlines()] == found
        table = list(csv.reader(io.StringIO(whole(client, path, asked, "csv"), newline="")))
        assert table[1:] == [[exports.cell(row[name]) for name in table[0]] for row in found], path
        assert found, path
        assert table[0] == list(found[0])
        seen[path] = len(found)
    assert {path for path in seen if seen[path] < ROWS} == {"tokens/"}


def whole(client: Client, path: str, parameters: dict[str, str], form: str) -> str:
    answer: Any = client.get(f"/api/v2/{path}", {**parameters, "format": form})
    assert answer.status_code == 200, answer
    assert answer["Content-Disposition"].endswith(f'.{form}"')
    return b"".join(answer.streaming_content).decode()


def test_a_form_is_chosen_by_accept_too_and_filters_hold(api: Api, rows: None) -> None:
    client = api()
    answer: Any = client.get("/api/v2/jobs/?task=1", headers={"accept": "text/csv"})
    assert (
        answer["Content-Type"] == "text/csv; charset=utf-8" and 'filename="jobs.csv"' in answer["Content-Disposition"]
    )
    (head,) = b"".join(answer.streaming_content).decode().splitlines()
    assert head.startswith("id,task_id,name")
    answer = client.get("/api/v2/jobs/?status=failed", headers={"accept": "application/x-ndjson"})
    assert len(b"".join(answer.streaming_content).splitlines()) == ROWS
    assert client.get("/api/v2/jobs/?format=json").json()["results"][0]["id"] == ROWS
    assert client.get("/api/v2/jobs/1/?format=csv").status_code == 422


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("tasks/?format=xml", "format"),
        ("tasks/?format=", "format"),
        ("tasks/?format=csv&format=csv", "format"),
        ("tasks/?format=csv&stauts=done", "stauts"),
        ("tasks/?format=csv&status=odd", "status"),
        ("tasks/?format=ndjson&page_size=5", "page_size"),
        ("tasks/?format=csv&cursor=x", "cursor"),
        ("tasks/?format=csv&ordering=vo", "ordering"),
        ("tasks/?ordering=--id", "ordering"),
        ("tasks/?ordering=", "ordering"),
        ("jobs/?ordering=name", "ordering"),
        ("files/", "lfn"),
        ("files/?lfn=", "lfn"),
        ("queues/?status=odd", "status"),
    ],
)
def test_what_a_list_does_not_know_is_named(api: Api, query: str, field: str) -> None:
    answer = api().get(f"/api/v2/{query}")
    assert answer.status_code == 422 and answer["Content-Type"] == "application/problem+json"
    assert [e["field"] for e in answer.json()["errors"]] == [field]


ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["2026-01-01", "0001-01-01T00:00:00+23:59", "x\0", "\ud800", 2**70, "-creation_date", "name"]),
    lambda inner: st.lists(inner, max_size=5),
    max_leaves=8,
)


def test_a_cursor_of_anything_is_a_page_or_refused(api: Api, rows: None) -> None:
    client = api()
    orderings = ("id", "-creation_date", "current_priority", "-name")

    @given(ordering=st.sampled_from(orderings), back=st.booleans(), value=ANY_JSON, key=ANY_JSON, cut=st.booleans())
    def check(ordering: str, back: bool, value: Any, key: Any, cut: bool) -> None:
        said = [ordering, back, value] if cut else [ordering, back, value, key]
        cursor = base64.urlsafe_b64encode(json.dumps(said).encode()).decode()
        answer = client.get("/api/v2/tasks/", {"cursor": cursor, "ordering": ordering})
        assert answer.status_code in (200, 422)
        if answer.status_code == 422:
            assert [e["field"] for e in answer.json()["errors"]] == ["cursor"]

    check()


def test_a_cursor_holds_for_its_own_order_only(api: Api, rows: None) -> None:
    url = api().get("/api/v2/tasks/?page_size=2&ordering=name").json()["next"]
    answer = api().get(url.replace("ordering=name", "ordering=-name"))
    assert answer.status_code == 422


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "true"),
        (-5, "-5"),
        (1.5, "1.5"),
        ("-5", "'-5"),
        ("=SUM(A1)", "'=SUM(A1)"),
        ("+1", "'+1"),
        ("@x", "'@x"),
        ("\tx", "'\tx"),
        ("\rx", "'\rx"),
        ("a=b", "a=b"),
        ("'x", "'x"),
        ([1, {"ü": None}], '[1,{"ü":null}]'),
    ],
)
def test_a_cell_is_never_a_formula(value: Any, text: str) -> None:
    assert exports.cell(value) == text


@pytest.mark.django_db
def test_an_export_reads_in_pieces_as_it_is_sent(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_table("jedi_tasks", 25, **TABLES["jedi_tasks"])
    monkeypatch.setattr(exports, "CHUNK", 10)
    client = api()
    with CaptureQueriesContext(connection) as before:
        answer: Any = client.get("/api/v2/tasks/?format=ndjson&ordering=creation_date")
    assert not [q for q in before.captured_queries if "jedi_tasks" in q["sql"]]
    with CaptureQueriesContext(connection) as during:
        pieces = iter(answer.streaming_content)
        assert next(pieces).count(b"\n") == 10 and len(during) == 1
        assert [piece.count(b"\n") for piece in pieces] == [10, 5] and len(during) == 3


@pytest.mark.django_db(transaction=True)
def test_few_exports_run_at_once_and_give_their_place_back(api: Api) -> None:
    client, other = api(), api("user", name="eve")
    held: list[Any] = [client.get("/api/v2/tasks/?format=csv")]
    refused = client.get("/api/v2/jobs/?format=csv")
    assert refused.status_code == 429 and refused["Retry-After"] == "5", "one account leaves a place to others"
    assert refused.json()["detail"].startswith("Another export of yours is still running")
    held.append(other.get("/api/v2/tasks/?format=csv"))
    refused = api("shifter").get("/api/v2/tasks/?format=csv")
    assert refused.status_code == 503 and refused["Retry-After"] == "5"
    assert client.get("/api/v2/tasks/").status_code == 200
    held[0].close()  # nobody has read it
    b"".join(held[1].streaming_content)
    held[1].close()
    held[1].close()
    for answer in [one.get("/api/v2/tasks/?format=csv") for one in (client, other)]:
        assert answer.status_code == 200
        answer.close()


@pytest.mark.django_db(transaction=True)
def test_an_export_goes_over_a_real_connection(live_server: LiveServer, make_token: Callable[..., str]) -> None:
    fill_table("jedi_tasks", 2500, **TABLES["jedi_tasks"])
    request = urllib.request.Request(
        f"{live_server.url}/api/v2/tasks/?format=csv&ordering=-creation_date",
        headers={"Authorization": f"Bearer {make_token()}"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        found = list(csv.DictReader(io.TextIOWrapper(answer, encoding="utf-8", newline="")))
    assert len({row["id"] for row in found}) == 2500 and found[0]["error_dialog"].startswith('\'=1+1,"x"\nü')


@pytest.mark.django_db
@pytest.mark.parametrize(
    "text", ["creation_date", "-creation_date", "current_priority", "-current_priority", "name", "-name"]
)
def test_pages_in_an_order_go_through_its_index(text: str) -> None:
    fill_table(
        "jedi_tasks", 5000, **(TABLES["jedi_tasks"] | {"currentpriority": "NULLIF(i % 50, 7)", "taskname": "'n' || i"})
    )
    order = Order.of(Task, text)
    place = order.place_of(order.rows(Task.objects.all(), None, 2000)[-1])
    parts = [part[:100] for part in order._parts(Task.objects.all(), place)]
    for part in parts:
        assert_uses_an_index(part)
    assert '"Sort"' not in parts[0].explain(format="json")


def test_pages_link_to_the_whole_list_with_their_filters(rows: None, make_user: Callable[..., Any]) -> None:
    people = Client()
    people.force_login(make_user())
    for path, found in (
        ("/tasks/?status=running&name=b", 4),
        ("/jobs/?status=failed&error=&site=", ROWS),
    ):
        link = re.search(r'href="(/api/v2/[^"]*format=csv)"', people.get(path, follow=True).content.decode())
        assert link, path
        answer: Any = people.get(link[1].replace("&amp;", "&"))
        assert (
            answer.status_code == 200
            and len(list(csv.reader(io.StringIO(b"".join(answer.streaming_content).decode())))) == found + 1
        )
