"""The page on the audit trail: the same as the API's list, with links to what things were done to."""

from __future__ import annotations

import ast
import csv
import io
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from jedisite import audit
from jedisite.models import AuditEntry
from tasks_app.commands.act_words import title_of
from tasks_app.web.machinery.trail import in_words
from tests.plans import assert_uses_an_index, fill_table
from tests.tasks_app.web.lists.test_listing import Table
from tests.tasks_app.web.test_pages import MOST_QUERIES

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[4]


def test_the_trail_says_who_did_what_and_leads_there(reader: Client, django_assert_max_num_queries: Any) -> None:
    assert "No entries yet" in reader.get("/audit/?view=all").content.decode()
    audit.record(
        "grace", "agent.period", "agent", "feeder", reason="too <slow>", details={"changed": {"period_s": [5, 2]}}
    )
    audit.record("ada", "kill", "task", 20_000_000, reason="wrong")
    audit.record("grace", "admin.change", "user", 1, details={"changed": {"email": ["a@b.c", "d@e.f"]}})
    audit.record("ada", "token.make", "token", 7, details={"scope": "read"})
    for query, shown in (
        ("view=all", ["token.make", "kill", "agent.period"]),
        ("actor=grace", ["agent.period"]),
        ("object_type=task&object_id=20000000", ["kill"]),
        ("action=kill&window=1h", ["kill"]),
        ("until=2020-01-01", []),
        ("since=2020-01-01&object_type=user", []),
    ):
        with django_assert_max_num_queries(MOST_QUERIES):
            page = reader.get(f"/audit/?{query}")
        rows = Table(page.content.decode()).rows
        assert [row[2] for row in rows] == shown and not page.context["faults"], query
        answer: Any = reader.get(dict(page.context["export_forms"])["CSV"])
        exported = list(csv.reader(io.StringIO(b"".join(answer.streaming_content).decode(), newline="")))
        assert exported[1:] == rows
    text = reader.get("/audit/?view=all").content.decode()
    assert 'href="/agents/feeder/"' in text and 'href="/tasks/20000000/"' in text and "period_s: 5 → 2" in text
    assert "too &lt;slow&gt;" in text and "a@b.c" not in text and "/audit/?object_type=token&amp;object_id=7" in text
    for word in ("Change the period of an agent", "Kill", "Make a token"):
        assert f"{word}</a>" in text, word
    assert "object_type" in reader.get("/audit/?object_id=7").context["faults"][0]
    assert reader.get("/api/v2/audit/?object_id=7").status_code == 422


def test_acts_and_kinds_of_things_are_called_by_plain_words(reader: Client) -> None:
    audit.record("grace", "share.value", "globalshare", "Analysis")
    audit.record("grace", "bulk kill", "tasks", "2 tasks")
    audit.record("grace", "of old", "workqueue", 3)
    text = reader.get("/audit/?view=all").content.decode()
    for words in ("Change a share", "Kill, many at once", "of old", "share <a", "work queue <a"):
        assert words in text, words
    assert "globalshare <a" not in text


def test_every_act_that_is_written_down_has_a_title() -> None:
    packages = ("jedisite", "brokerage_app", "tasks_app", "events_app")
    found = {
        act.value
        for package in packages
        for file in (ROOT / package).rglob("*.py")
        for call in ast.walk(ast.parse(file.read_text()))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("record", "record_many")
        and len(call.args) > 2
        for act in call.args[1:2]
        if isinstance(act, ast.Constant)
    }
    assert {"config.set", "admin.change", "submit"} <= found
    assert not [act for act in sorted(found) if title_of(act) == act]


def test_those_who_run_the_grid_see_accounts_too(operator: Client) -> None:
    audit.record("ada", "admin.change", "user", 1)
    assert len(Table(operator.get("/audit/?view=all").content.decode()).rows) == 1
    assert len(operator.get("/api/v2/audit/").json()["results"]) == 1


def test_filters_of_the_trail_go_through_indexes(db: None) -> None:
    fill_table(
        "audit_entries",
        5000,
        actor="'u' || i % 500",
        action="'a' || i % 500",
        object_type="'t' || i % 50",
        at="now() - i * interval '1 hour'",
    )
    for name, value in (("actor", "u7"), ("action", "a7"), ("object_type", "t7")):
        assert_uses_an_index(AuditEntry.objects.filter(**{name: value}).order_by("-id")[:50])


@pytest.mark.parametrize(
    ("details", "said"),
    [
        ({"changed": {"memory": [2000, 4000], "password": None}}, "memory: 2000 → 4000, password"),
        ({"changed": {"sites": 1, "queues": 2}, "read": {"queues": 300}}, "sites: 1, queues: 2"),
        ({"changed": {}, "read": {"queues": 300}}, 'changed: {}, read: {"queues": 300}'),
    ],
)
def test_what_was_changed_and_how_many_things_are_said_in_a_line(details: dict[str, Any], said: str) -> None:
    assert in_words(details) == said
