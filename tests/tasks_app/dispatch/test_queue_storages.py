"""What pilots are told of their queue along with each job."""

from __future__ import annotations

import pytest

from brokerage_app.models import Queue, StorageEndpoint
from tasks_app.dispatch import queue_storages
from tasks_app.dispatch.handing_out import Request, get_jobs
from tasks_app.labs.bench.scene import add_jobs
from tasks_app.models import Job, JobFile
from tests.flow.driving import SITE

pytestmark = pytest.mark.usefixtures("tables")


def told() -> tuple[str, int]:
    (job,) = get_jobs(Request(SITE))
    return job["destinationSE"], job["maxwdir"]


def test_a_change_of_a_queue_reaches_its_pilots_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    add_jobs(3, [SITE], "activated")
    Queue.objects.filter(name=SITE).update(storage=None, work_dir_mb=None)
    assert told() == ("NULL", 16_336)
    endpoint = StorageEndpoint.objects.create(name="SE_1", site_name=SITE)
    Queue.objects.filter(name=SITE).update(storage=endpoint, work_dir_mb=500)
    assert told() == ("NULL", 16_336), "it is not read along with each job"
    monkeypatch.setattr(queue_storages, "CACHE_S", 0.0)
    assert told() == ("SE_1", 500)


def test_jobs_of_a_queue_that_is_gone_are_handed_out() -> None:
    add_jobs(1, ["GONE"], "activated")
    assert get_jobs(Request("GONE"))[0]["destinationSE"] == "NULL"


@pytest.mark.parametrize(("paths", "left"), [(("/a", "/b"), "SE_Q"), (("", "/b"), "SE_N"), (("/a", ""), "SE_N")])
def test_outputs_for_a_nucleus_are_left_at_the_queue_where_both_storages_are_of_this_machine(
    paths: tuple[str, str], left: str
) -> None:
    for name, path in zip(("SE_Q", "SE_N"), paths, strict=True):
        StorageEndpoint.objects.create(name=name, site_name=SITE, path=path)
    Queue.objects.filter(name=SITE).update(storage_id="SE_Q")
    (number,) = add_jobs(1, [SITE], "activated")
    Job.objects.filter(pk=number).update(nucleus="N")
    JobFile.objects.filter(job_id=number).update(destination_se="SE_N")
    assert get_jobs(Request(SITE))[0]["ddmEndPointOut"] == f"{left},{left}"
