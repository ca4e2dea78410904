"""Limits on jobs that wait for transfers: time-outs, a queue's limit on transferring jobs, and the weight of assigned ones."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from brokerage_app.grid import configured
from brokerage_app.models import GdpConfig, Queue, VerdictRecord
from tasks_app.agents import adder, feeder, job_generator, refiner, task_broker
from tasks_app.agents.watchdogs import job_timeouts, site_statistics, user_caps
from tasks_app.models import Job, TransferRule
from tests.flow.driving import jobs, parameters, reads, settle, states, status, submit, task, wake
from tests.flow.real_pilot import RealPilot
from tests.flow.test_transfers import fed, gathered, moved, site
from tests.tasks_app.transfers.storage_scene import Storages, configure

pytestmark = pytest.mark.usefixtures("books")
__all__ = ["site"]
MINUTE = timedelta(minutes=1)


def production(name: str, files: int, **more: Any) -> int:
    """A task whose input is at its nucleus, the queue of which is offline then; its jobs are made."""
    made = submit(
        parameters(name, reads("lab.in"), nFilesPerJob=1, prodSourceLabel="managed", cpuTime=10, nFiles=files, **more)
    )
    refiner.run()
    feeder.run()
    wake()
    Queue.objects.filter(name="CERN_Q").update(status="online")
    task_broker.run(draw=lambda: 0.0)
    Queue.objects.filter(name="CERN_Q").update(status="offline")
    job_generator.run()
    return made


@pytest.fixture
def away(site: Storages) -> Storages:
    """Input is at the nucleus; jobs are brokered as those of production."""
    key = "JOB_BROKER_managed"
    GdpConfig.objects.create(app="jedi", component="brokerage", key=key, value="production", type="str", vo="lab")
    configured.forget()
    site.dataset("lab.in", "CERN_DISK", [f"in{n}" for n in range(6)])
    return site


def test_a_job_whose_input_does_not_come_in_time_is_made_anew_and_its_copy_is_cancelled(away: Storages) -> None:
    configure("LINK_RATE", 1e-9)
    made = production("lab.t", 1)
    assert states(made) == {"assigned": 1}
    (first,) = jobs(made)
    moved()
    limit = timedelta(hours=12)
    assert job_timeouts.run(now=timezone.now() + limit - MINUTE).items == 0
    assert job_timeouts.run(now=timezone.now() + limit + MINUTE).items == 1
    first.refresh_from_db()
    assert (first.status, first.sub_status) == ("closed", "toreassign")
    moved()
    assert [rule.status for rule in TransferRule.objects.filter(job_id=first.id)] == ["cancelled"]
    assert not away.parts()
    configure("LINK_RATE", 0)
    settle(moved, RealPilot(site="FAR_Q").work)
    assert (status(made), states(made)) == ("done", {"closed": 1, "finished": 1})


@pytest.mark.parametrize(
    ("priority", "own", "limit"),
    [
        (500, {}, timedelta(days=6)),
        (500, {"transfer_days_low": 1, "transfer_days_high": 9}, timedelta(days=1)),
        (900, {}, timedelta(days=2)),
        (900, {"transfer_days_high": 0.5, "transfer_days_low": 9}, timedelta(hours=12)),
    ],
)
def test_a_job_whose_outputs_do_not_arrive_in_time_fails_and_is_tried_again(
    site: Storages, priority: int, own: dict[str, float], limit: timedelta
) -> None:
    configure("LINK_RATE", 1e-9)
    made = gathered(site)
    moved()
    Job.objects.update(current_priority=priority)
    Queue.objects.filter(name="FAR_Q").update(**own)
    (first,) = jobs(made)
    assert job_timeouts.run(now=timezone.now() + limit - MINUTE).items == 0
    assert job_timeouts.run(now=timezone.now() + limit + MINUTE).items == 1
    first.refresh_from_db()
    assert first.status == "failed" and first.dispatcher_error_diag
    moved()
    assert [rule.status for rule in TransferRule.objects.filter(job_id=first.id)] == ["cancelled"]
    (kept,) = [path.name for path in site.root.rglob("*lab.t*") if path.is_file()]
    assert kept.endswith(".log.tgz"), "the log of a job that failed is kept, its outputs are not"
    configure("LINK_RATE", 0)
    settle(moved, RealPilot(site="FAR_Q").work)
    assert (status(made), states(made)) == ("done", {"failed": 1, "finished": 1})


def test_a_queue_with_too_many_transferring_jobs_gets_no_more_until_they_have_ended(away: Storages) -> None:
    Queue.objects.filter(name="FAR_Q").update(transferring_limit=1)
    first = production("lab.t", 2)
    moved()
    assert RealPilot(site="FAR_Q").work() == 2
    adder.run()
    assert states(first) == {"transferring": 2}
    site_statistics.run()
    second = production("lab.u", 1)
    assert states(second) == {}
    (skip,) = [one for one in VerdictRecord.objects.filter(task_id=second).latest("id").skipped if one[0] == "FAR_Q"]
    assert skip[1] == "too_many_transferring" and "2 jobs are transferring, the limit is 1 with 0 running" in skip[2]
    settle(moved)
    site_statistics.run()
    settle(moved, RealPilot(site="FAR_Q").work)
    assert (status(first), status(second)) == ("done", "done")


def test_queues_with_many_assigned_jobs_weigh_less(away: Storages) -> None:
    configure("LINK_RATE", 1e-9)
    production("lab.t", 2)

    def factor(name: str) -> float:
        site_statistics.run()
        made = production(name, 1)
        (chosen,) = [one for one in VerdictRecord.objects.filter(task_id=made).latest("id").chosen if one[0] == "FAR_Q"]
        return float(chosen[2]["1 / many assigned"])

    assert factor("lab.u") == 0.5, "all that is queued there waits for its input"
    configure("LINK_RATE", 0)
    moved()
    moved()
    assert factor("lab.v") == 1.0


def test_a_users_job_whose_input_does_not_come_in_time_is_made_anew_and_its_copy_is_cancelled(site: Storages) -> None:
    Queue.objects.filter(name="CERN_Q").update(status="offline")
    configure("LINK_RATE", 1e-9)
    made = fed(site, 1, "CERN_DISK", official=False)
    job_generator.run()
    assert states(made) == {"assigned": 1}
    (first,) = jobs(made)
    moved()
    Queue.objects.filter(name="CERN_Q").update(status="online")
    limit = timedelta(hours=12)
    assert job_timeouts.run(now=timezone.now() + limit - MINUTE).items == 0
    assert job_timeouts.run(now=timezone.now() + limit + MINUTE).items == 1
    first.refresh_from_db()
    assert (first.status, first.sub_status) == ("closed", "toreassign")
    moved()
    assert [rule.status for rule in TransferRule.objects.filter(job_id=first.id)] == ["cancelled"]
    assert not site.parts()
    settle(moved, RealPilot(site="CERN_Q").work)
    assert (status(made), states(made)) == ("done", {"closed": 1, "finished": 1})


def test_too_much_that_is_copied_for_a_user_throttles_that_users_task_until_it_has_arrived(
    site: Storages, settings: Any
) -> None:
    Queue.objects.filter(name="CERN_Q").delete()
    made = fed(site, 2, "CERN_DISK", official=False)
    job_generator.run()
    assert states(made) == {"assigned": 2}
    settings.JEDI_LIMITS = {"USER_TRANSFER_LIMIT": 2e-6}
    user_caps.run()
    assert status(made) == "running", "2 kB are on their way, which is not more"
    settings.JEDI_LIMITS = {"USER_TRANSFER_LIMIT": 1e-6}
    user_caps.run()
    assert status(made) == "throttled" and "type=transfer" in (task(made).error_dialog or "")
    moved()
    user_caps.run()
    assert status(made) == "running"
    settle(moved, RealPilot(site="FAR_Q").work)
    assert (status(made), states(made)) == ("done", {"finished": 2})
