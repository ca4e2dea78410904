"""What is kept of workers: from their instances, and from the pilots in them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tasks_app.dispatch.harvester_instances import ForeignInstanceError, highest_worker
from tasks_app.dispatch.worker_moves import WorkerNews, pilot_status, update_workers
from tasks_app.models import Harvester, Job, Worker, WorkerJob

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def kept() -> list[Any]:
    names = [field.attname for field in Worker._meta.concrete_fields if field.attname not in ("id", "last_update")]
    return [list(Worker.objects.order_by("id").values(*names)), list(WorkerJob.objects.order_by("id").values())]


def test_workers_are_kept_and_the_same_news_twice_change_nothing(make_job: Callable[..., Job]) -> None:
    job = make_job()
    about = {"batchid": '1"\\,{2}', "ncore": 8, "submittime": AT, "diagmessage": "NULL", "minramcount": 2**40}
    news = [WorkerNews(n, "submitted", "SITE_A", about, [job.id, 1]) for n in (7, 3)]
    update_workers("h", news, by="worker:x")
    before = kept()
    update_workers("h", news, by="worker:x")
    assert kept() == before
    worker = Worker.objects.get(worker_id=7)
    assert (worker.batch_id, worker.cores, worker.submitted, worker.message, worker.min_ram_mb, worker.node) == (
        '1"\\,{2}',
        8,
        AT,
        "NULL",
        2**40,
        None,
    )
    assert set(WorkerJob.objects.values_list("worker_id", "job_id")) == {(3, job.id), (7, job.id)}, "no unknown jobs"
    update_workers("h", [WorkerNews(7, "running", "SITE_A"), WorkerNews(7, "finished", "SITE_A")], by="worker:x")
    update_workers("h", [WorkerNews(7, "running", "SITE_A", {"errorcode": -5})], by="worker:x")
    worker.refresh_from_db()
    assert (worker.status, worker.cores, worker.error_code) == ("finished", 8, -5), "late news wake no ended worker"


def test_numbers_of_workers_are_taken_for_good_and_an_instance_has_one_owner() -> None:
    assert highest_worker("h", by="worker:x") == 0
    update_workers("h", [WorkerNews(12, "running", "A")], by="worker:x")
    Worker.objects.all().delete()
    update_workers("h", [WorkerNews(3, "running", "A")], by="worker:x")
    assert highest_worker("h", by="worker:x") == 12
    for act in (
        lambda: highest_worker("h", by="worker:y"),
        lambda: update_workers("h", [WorkerNews(3, "failed", "A")], by="worker:y"),
    ):
        with pytest.raises(ForeignInstanceError):
            act()
    assert Worker.objects.get().status == "running"


def test_a_pilot_tells_of_its_worker_before_or_after_the_instance_does() -> None:
    assert not pilot_status("h", 1, "started", site="A"), "nobody knows the instance"
    Harvester.objects.create(id="h", owner="worker:x")
    assert not pilot_status("h", 1, "started"), "no queue is said for a worker nobody knows"
    assert pilot_status("h", 1, "started", site="A", node="wn1")
    update_workers("h", [WorkerNews(1, "submitted", "A"), WorkerNews(2, "submitted", "A")], by="worker:x")
    assert not pilot_status("h", 2, "started", site="B"), "a worker of another queue"
    assert pilot_status("h", 2, "finished", site="A") and pilot_status("h", 2, "started", site="A")
    assert pilot_status("h", 2, "finished", site="A")
    first, second = Worker.objects.order_by("worker_id")
    assert (first.pilot_status, first.node, first.pilot_ended) == ("started", "wn1", None) and first.pilot_started
    assert second.pilot_status == "finished" and second.pilot_started and second.pilot_ended
