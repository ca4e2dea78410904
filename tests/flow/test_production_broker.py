"""Production tasks: their jobs go to the queues that the broker of production chooses, and the reasons are kept."""

from __future__ import annotations

from collections import Counter

import pytest

from brokerage_app.grid.configured import forget
from brokerage_app.models import GdpConfig, Queue, ResourceType, VerdictRecord
from tasks_app.models import Task
from tests.flow.driving import SITE, add_dataset, add_queue, dataset, jobs, parameters, reads, status, task
from tests.flow.test_generation import generate, ready

pytestmark = pytest.mark.usefixtures("books")


def production(files: int, **more: object) -> int:
    """A fed task of the label and the VO of production."""
    add_dataset("lab.data", files, size=1_000_000)
    Queue.objects.filter(name=SITE).delete()
    made = ready(parameters("lab.t", reads("lab.data"), nFilesPerJob=1, **more))
    Task.objects.filter(pk=made).update(
        vo="atlas", prod_source_label="managed", cpu_time=None, cpu_time_unit=None, walltime=None, walltime_unit=None
    )
    return made


def test_each_queue_gets_jobs_or_a_reason() -> None:
    ResourceType.objects.create(name="SCORE", min_cores=1, max_cores=1, min_ram_per_core_mb=0, max_ram_per_core_mb=2000)
    ResourceType.objects.create(name="SCORE_HIMEM", min_cores=1, max_cores=1, min_ram_per_core_mb=2001)
    add_queue("GOOD")
    add_queue("SMALL", max_memory_mb=800)
    add_queue("OFF", status="offline")
    add_queue("SHORT", max_walltime_s=3600)
    add_queue("GOOD_TEST")
    made = production(8)
    generate()
    assert Counter((job.site, job.resource_type) for job in jobs(made)) == {("GOOD", "SCORE"): 8}
    assert status(made) == "running"
    record = VerdictRecord.objects.get(task_id=made)
    assert record.broker == "production"
    assert [choice[0] for choice in record.chosen] == ["GOOD/SCORE"]
    assert record.reasons == {
        "site_offline": ["OFF"],
        "test_queue": ["GOOD_TEST"],
        "low_memory": ["SMALL"],
        "short_for_unknown": ["SHORT"],
    }


def test_a_task_that_no_queue_takes_waits_with_the_numbers() -> None:
    add_queue("SMALL", capability="", max_memory_mb=800)
    made = production(2)
    generate()
    assert not jobs(made) and status(made) == "pending"
    assert "SMALL, was skipped: needs 900 MB, the site gives 800 MB" in (task(made).error_dialog or "")
    assert dataset(made).files_used == 0
    ((site, code, says, values),) = VerdictRecord.objects.get(task_id=made).skipped
    assert (site, code, says, values) == ("SMALL", "low_memory", "needs 900 MB, the site gives 800 MB", [900, 800])


def test_the_cap_of_the_configuration_is_the_room_of_a_queue() -> None:
    add_queue("GOOD", capability="")
    GdpConfig.objects.create(app="jedi", component="jobbroker", key="NQUEUELIMITSITE", value="3", type="int")
    forget()
    try:
        made = production(8)
        generate()
        assert len(jobs(made)) == 3
        generate()
        assert len(jobs(made)) == 3, "the queue is full"
    finally:
        forget()


def test_any_installation_may_have_the_broker_of_production() -> None:
    add_queue("GOOD", capability="")
    add_queue("MY_TEST", capability="")
    GdpConfig.objects.create(
        app="jedi", component="brokerage", key="JOB_BROKER_user", value="production", type="str", vo="lab"
    )
    forget()
    try:
        add_dataset("lab.data", 2)
        made = ready(parameters("lab.t", reads("lab.data"), nFilesPerJob=1))
        generate()
        assert {job.site for job in jobs(made)} <= {"GOOD", SITE}
        assert VerdictRecord.objects.get(task_id=made).reasons == {"test_queue": ["MY_TEST"]}
    finally:
        forget()
