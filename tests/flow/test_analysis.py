"""Whole tasks of analysis: to their input, held back by caps, and on again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from brokerage_app.grid import configured
from brokerage_app.models import GdpConfig, Queue, QueueEndpoint, StorageEndpoint, VerdictRecord
from tasks_app.lifecycle import task_moves
from tasks_app.models import CatalogueDataset, CatalogueFile, Job
from tests.flow.driving import SITE, USER, add_queue, jobs, parameters, reads, settle, states, status, task, wake
from tests.flow.driving import agents_turn as turn

pytestmark = pytest.mark.usefixtures("books")
DATA = "data.x"


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    configured.forget()
    yield
    configured.forget()


def queue(name: str, endpoint: str, **more: Any) -> Queue:
    """A queue of analysis that reads from and writes to an endpoint of its own."""
    made = add_queue(name, **{"type": "analysis", "capability": "", **more})
    place, _ = StorageEndpoint.objects.get_or_create(
        name=endpoint, defaults={"site_name": name, "space_free_gb": 9000.0, "space_total_gb": 9999.0}
    )
    QueueEndpoint.objects.create(queue=made, endpoint=place, order_read=1, order_write=1)
    return made


def dataset_at(endpoint: str, files: int = 4) -> None:
    dataset = CatalogueDataset.objects.create(name=DATA, scope="lab", open=False)
    CatalogueFile.objects.bulk_create(
        CatalogueFile(
            dataset=dataset,
            lfn=f"f{number}",
            scope="lab",
            guid=f"{number:08x}",
            size=1000,
            adler32="0" * 8,
            endpoint=endpoint,
            url=f"file://localhost/data/f{number}",
        )
        for number in range(files)
    )


def submit(name: str = "user.ada.analysis", attributes: str | None = None, **more: Any) -> int:
    item = reads(DATA) if attributes is None else reads(DATA, attributes=attributes)
    params = parameters(name, item, vo="atlas", nFilesPerJob=1, **more)
    return task_moves.submit(
        params, name=name, user=USER, vo="atlas", label="user", task_type="anal", priority=500, parent_id=None
    )


def configure(key: str, value: int) -> None:
    GdpConfig.objects.update_or_create(
        app="pandaserver", component="prio_mgr", key=key, vo=None, defaults={"value": str(value), "type": "int"}
    )
    configured.forget()


def reasons(task_id: int) -> dict[str, str]:
    record = VerdictRecord.objects.filter(task_id=task_id).order_by("-id")[0]
    return {site: code for site, code, *_ in record.skipped}


def test_jobs_of_analysis_go_to_their_input() -> None:
    queue("NEAR", "SE_NEAR")
    queue("FAR", "SE_FAR")
    queue("FOR_PRODUCTION", "SE_NEAR", type="production")
    dataset_at("SE_NEAR")
    task_id = submit()
    settle()
    assert {job.site for job in jobs(task_id)} == {"NEAR"}
    assert status(task_id) == "running" and len(jobs(task_id)) == 4
    assert reasons(task_id) == {"FAR": "no_data_there", "FOR_PRODUCTION": "other_kind", SITE: "no_data_there"}


def test_input_is_moved_when_no_queue_near_it_will_do() -> None:
    queue("NEAR", "SE_NEAR", status="offline")
    queue("FAR", "SE_FAR")
    dataset_at("SE_NEAR")
    task_id = submit()
    settle()
    assert {job.site for job in jobs(task_id)} == {"FAR"}
    assert reasons(task_id) == {"NEAR": "site_offline", SITE: "no_output_storage"}


@pytest.mark.parametrize("how", [{"allowIncompleteInDS": True}, {"attributes": "manytime"}])
def test_a_task_that_allows_it_reads_what_there_is_of_an_incomplete_input(how: dict[str, Any]) -> None:
    """With manytime replicas count as complete."""
    queue("NEAR", "SE_NEAR")
    queue("FAR", "SE_FAR")
    dataset_at("SE_NEAR", files=40)
    lost = CatalogueFile.objects.filter(lfn__in=[f"f{number}" for number in range(12)])
    lost.update(endpoint="SE_GONE")
    waits = submit("user.ada.waits")
    allows = submit("user.ada.allows", **how)
    settle()
    assert (status(waits), states(waits)) == ("pending", {})
    assert "40 files are read, at most 28 of them at one place" in (task(waits).error_dialog or "")
    assert status(allows) == "running" and {job.site for job in jobs(allows)} == {"NEAR"}


def test_a_user_over_a_cap_waits_and_goes_on_below_it() -> None:
    queue("NEAR", "SE_NEAR")
    dataset_at("SE_NEAR")
    configure("CAP_RUNNING_USER_JOBS", 2)
    for number in range(5):
        Job.objects.create(
            id=7_000_000_000 + number, status="activated", user=USER, prod_source_label="user", site="ELSEWHERE"
        )
    task_id = submit()
    for _ in range(3):
        turn()
    assert states(task_id) == {}
    assert status(task_id) == "pending"
    assert "too many queued jobs: 5 queued jobs, 4 are allowed for the user ada" in (task(task_id).error_dialog or "")
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM jobs WHERE computingsite = 'ELSEWHERE'")
    for _ in range(3):
        wake()
        turn()
    assert status(task_id) == "running" and len(jobs(task_id)) == 4


def test_the_caps_of_a_machine_hold_for_users_as_those_of_the_configuration_do(settings: Any) -> None:
    queue("NEAR", "SE_NEAR")
    dataset_at("SE_NEAR")
    configure("CAP_RUNNING_USER_JOBS", 1)
    for number in range(5):
        Job.objects.create(
            id=7_000_000_000 + number, status="activated", user=USER, prod_source_label="user", site="ELSEWHERE"
        )
    settings.JEDI_LIMITS = {"CAP_RUNNING_USER_JOBS": 2}
    task_id = submit()
    for _ in range(3):
        turn()
    assert "5 queued jobs, 4 are allowed for the user ada" in (task(task_id).error_dialog or "")
    settings.JEDI_LIMITS = {"CAP_RUNNING_USER_JOBS": 10}
    for _ in range(3):
        wake()
        turn()
    assert len(jobs(task_id)) == 4
    Job.objects.filter(site="ELSEWHERE").delete()


def test_tasks_of_other_organisations_do_not_ask_for_input() -> None:
    queue("FAR", "SE_FAR")
    dataset_at("SE_NEAR")
    params = parameters("lab.t", reads(DATA), nFilesPerJob=1)
    task_id = task_moves.submit(
        params, name="lab.t", user=USER, vo="lab", label="user", task_type="anal", priority=500, parent_id=None
    )
    settle()
    assert {job.site for job in jobs(task_id)} == {"FAR"}
