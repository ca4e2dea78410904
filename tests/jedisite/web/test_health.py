"""Whether processes and the installation say that they work."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.backends.utils import CursorWrapper
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.utils import timezone

from jedisite.models import Agent
from jedisite.web import health

pytestmark = pytest.mark.django_db


def test_a_process_says_that_it_answers_without_the_database(client: Client, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        answer = client.get("/healthz")
    assert (answer.status_code, answer.content) == (200, b"ok\n") and "no-store" in answer["Cache-Control"]


def test_it_is_ready_when_the_database_its_tables_and_an_agent_are(
    client: Client, monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: Any
) -> None:
    def asked() -> tuple[int, dict[str, str]]:
        answer = client.get("/readyz")
        assert answer.json()["ready"] is (answer.status_code == 200)
        return answer.status_code, answer.json()["checks"]

    monkeypatch.setattr(health, "_migrated", False)
    now = timezone.now()
    Agent.objects.all().delete()
    Agent.objects.create(name="late", period_s=5, due_at=now - timedelta(hours=1), last_error="x")
    Agent.objects.create(name="paused", period_s=5, due_at=now - timedelta(hours=1), paused=True)
    Agent.objects.create(name="works", period_s=60, due_at=now)
    Agent.objects.create(name="feeder", period_s=5, due_at=now)
    assert asked() == (200, {"database": "ok", "room": "ok", "migrations": "ok", "agents": "ok"})
    with django_assert_max_num_queries(6):
        asked()
    standstill = "all agents that process work (2 of 3 agents) have been late for more than a minute"
    for name, late_s, expected in (
        ("feeder", 50, (200, "ok")),
        ("feeder", 70, (503, standstill)),
        ("late", 0, (200, "ok")),
        ("late", 3600, (503, standstill)),
    ):
        Agent.objects.filter(name=name).update(due_at=now - timedelta(seconds=late_s))
        status, checks = asked()
        assert (status, checks["agents"]) == expected, (name, late_s)
    Agent.objects.filter(name="feeder").delete()
    Agent.objects.filter(name="late").update(period_s=50)
    Agent.objects.filter(name="works").update(due_at=now - timedelta(hours=1))
    assert asked() == (503, {"database": "ok", "room": "ok", "migrations": "ok", "agents": "all 2 agents are late"})

    Agent.objects.filter(name="works").update(due_at=now)
    long = now - timedelta(seconds=301)
    Agent.objects.filter(name="works").update(unended_since=long)
    assert asked() == (
        503,
        {"database": "ok", "room": "ok", "migrations": "ok", "agents": "passes of works are stuck"},
    )
    for fine in (
        {"unended_since": None},
        {"unended_since": long + timedelta(seconds=10)},
        {"period_s": 120},
        {"paused": True},
    ):
        Agent.objects.filter(name="works").update(**{"unended_since": long, "period_s": 60, "paused": False, **fine})
        assert "do not end" not in asked()[1]["agents"], fine

    MigrationRecorder(connection).migration_qs.filter(app="jedisite").delete()
    monkeypatch.setattr(health, "_migrated", False)
    status, checks = asked()
    assert status == 503 and "not been applied" in checks["migrations"] and "agents" not in checks

    def lost(*_: Any) -> None:
        raise OperationalError("connection to server at 10.1.2.3 failed for user jedi")

    monkeypatch.setattr(CursorWrapper, "execute", lost)
    assert asked() == (503, {"database": "the database does not answer"})
