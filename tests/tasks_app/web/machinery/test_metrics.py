"""What Prometheus reads."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from brokerage_app.models import GlobalShare, JobCount, Queue
from jedisite.models import Agent
from jedisite.vocabulary.roles import Scope
from tasks_app.models import AttentionItem, Job, Task
from tests.tasks_app.web.test_pages import MOST_QUERIES

pytestmark = pytest.mark.django_db


def test_all_that_is_measured_is_read_with_a_token_for_reading(
    make_task: Callable[..., Task],
    make_job: Callable[..., Job],
    make_token: Callable[..., str],
    django_assert_max_num_queries: Any,
) -> None:
    client = Client()
    refused = client.get("/metrics")
    assert refused.status_code == 401 and refused["WWW-Authenticate"] == "Bearer"
    now = timezone.now()
    for status, wait in (("defined", 0), ("defined", 0), ("defined", 3600), ("done", 0)):
        make_task(status=status, next_check=now + timedelta(seconds=wait))
    GlobalShare.objects.all().delete()
    GlobalShare.objects.create(name="A", value=25)
    GlobalShare.objects.create(name="B", value=75)
    Queue.objects.create(name="Q", core_power=20.0)
    many = {"work_queue_id": 0, "resource_type": "", "label": "managed"}
    for site, share, status, jobs, cores in (
        ("Q", "A", "running", 10, 80),
        ("R", "B", "running", 3, 3),
        ("Q", "B", "sent", 2, 2),
        ("Q", "B", "activated", 5, 5),
    ):
        JobCount.objects.create(site=site, share=share, status=status, jobs=jobs, cores=cores, **many)
    Agent.objects.all().delete()
    Agent.objects.create(
        name="feeder", period_s=5, due_at=now - timedelta(hours=1), last_ended_at=now, last_duration_s=0.5
    )
    Agent.objects.create(name="adder", period_s=5, due_at=now, errors_in_a_row=2, last_error="x")
    for number, wait in enumerate((0, 0, 3600)):
        AttentionItem.objects.create(
            key=str(number),
            kind="late agent",
            tone="bad",
            sentence="x",
            since=now,
            path="/",
            snoozed_until=now + timedelta(seconds=wait) if wait else None,
        )
    headers = {"authorization": f"Bearer {make_token(scope=Scope.READ)}"}
    with django_assert_max_num_queries(MOST_QUERIES):
        answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200 and answer["Content-Type"].startswith("text/plain; version=0.0.4")
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }
    expected = {
        ("jedi_tasks", "defined"): 3,
        ("jedi_tasks", "done"): 1,
        ("jedi_tasks", "broken"): 0,
        ("jedi_tasks_due", "defined"): 2,
        ("jedi_jobs", "running"): 13,
        ("jedi_job_cores", "running"): 83,
        ("jedi_share_executing_hs", "A"): 1600,
        ("jedi_share_executing_hs", "B"): 70,
        ("jedi_share_queued_hs", "B"): 100,
        ("jedi_share_target_hs", "A"): 417.5,
        ("jedi_agent_late", "feeder"): 1,
        ("jedi_agent_late", "adder"): 0,
        ("jedi_agent_errors_in_a_row", "adder"): 2,
        ("jedi_agent_last_pass_duration_seconds", "feeder"): 0.5,
        ("jedi_agent_backlog", "feeder", "tasks"): 2,
        ("jedi_attention_items", "late agent", "bad"): 2,
        ("jedi_q2_queue", "waiting"): 0,
        ("jedi_database_waiting_locks",): 0,
    }
    assert {key: found.get(key) for key in expected} == expected
    assert found[("jedi_database_bytes",)] > 1e6 and ("jedi_agent_last_pass_items", "adder") not in found
    assert 3500 < found[("jedi_agent_overdue_seconds", "feeder")] < 3700


def test_what_was_never_counted_has_no_age(make_token: Callable[..., str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE statistics_refreshed")
        cursor.execute(
            """INSERT INTO statistics_refreshed (name, at, took_ms, rows)
               VALUES ('first', '-infinity', 0, 0), ('again', now(), 0, 0)"""
        )
    headers = {"authorization": f"Bearer {make_token(scope=Scope.READ)}"}
    said = Client().get("/metrics", headers=headers).content.decode()
    assert 'counted_seconds_ago{what="again"}' in said and "first" not in said
