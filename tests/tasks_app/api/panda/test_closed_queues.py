"""Pilots of a queue that somebody has closed: no job is handed out, and jobs that run go on."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from pytest_django.live_server_helper import LiveServer

from brokerage_app.models import Queue
from tasks_app.dispatch import closed_queues
from tasks_app.models import Job
from tests.tasks_app.api.v2.test_live import call

ACQUIRE, UPDATE, OLD = "/api/v1/pilot/acquire_jobs", "/api/v1/pilot/update_job", "/server/panda/getJob"


@pytest.mark.django_db(transaction=True)
def test_a_closed_queue_hands_out_nothing_and_lets_jobs_end(
    live_server: LiveServer, make_token: Callable[..., str], make_job: Callable[..., Job]
) -> None:
    for name in ("SITE_A", "SITE_B"):
        Queue.objects.create(name=name, site_name=name, status="online")
    tokens = {name: make_token("pilot", site=name, name=f"pilot of {name}") for name in ("SITE_A", "SITE_B")}
    running = make_job(status="running", attempt=1)
    waiting = [make_job(status="activated", site=name) for name in ("SITE_A", "SITE_A", "SITE_B")]

    def post(path: str, name: str, **body: object) -> dict[str, object]:
        status, _, said = call(live_server, "POST", path, tokens[name], json.dumps(body).encode())
        assert status == 200
        found: dict[str, object] = said
        return found

    def change(status: str, reason: str = "") -> None:
        Queue.objects.filter(pk="SITE_A").update(status=status, status_reason=reason)
        closed_queues.forget()

    for status, reason, why in (
        ("offline", "new switches until noon.", "No jobs: the queue SITE_A is offline (new switches until noon)."),
        ("paused", "", "No jobs: the queue SITE_A is paused."),
    ):
        change(status, reason)
        assert post(ACQUIRE, "SITE_A", site_name="SITE_A") == {"success": False, "message": why, "data": None}
        assert post(OLD, "SITE_A", siteName="SITE_A") == {"StatusCode": 20, "errorDialog": why}
        alive = post(UPDATE, "SITE_A", job_id=running.id, job_status="running", attempt_nr=1)
        assert alive["success"], alive
    assert Job.objects.filter(status="activated").count() == len(waiting)
    assert post(ACQUIRE, "SITE_B", site_name="SITE_B")["success"], "another queue's pilots go on"
    for status in ("brokeroff", "test"):
        change(status, "drains")
        assert post(ACQUIRE, "SITE_A", site_name="SITE_A")["success"], status


@pytest.mark.django_db
def test_the_status_is_read_again_after_some_seconds_and_not_at_each_call(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Callable[[int], object]
) -> None:
    Queue.objects.create(name="SITE_A", site_name="A", status="online")
    assert closed_queues.why_closed("SITE_A") == ""
    Queue.objects.update(status="offline")
    with django_assert_num_queries(0):  # type: ignore[attr-defined]
        assert closed_queues.why_closed("SITE_A") == ""
    monkeypatch.setattr(closed_queues, "CACHE_S", 0.0)
    assert closed_queues.why_closed("SITE_A") and not closed_queues.why_closed("NOWHERE")
