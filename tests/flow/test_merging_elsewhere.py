"""Unmerged files of a queue that is dead: merged at another queue, to which they are copied, or made again. On real files."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from brokerage_app.models import Queue, StorageEndpoint
from tasks_app.agents import adder, job_generator, merger, task_broker
from tasks_app.ddm.local_files import path_of
from tasks_app.models import CatalogueFile, JobFile, TransferRule
from tests.flow import test_transfers
from tests.flow.driving import inputs, jobs, settle, states, status, task
from tests.flow.real_pilot import RealPilot
from tests.flow.test_merging import MERGE, merge_jobs
from tests.flow.test_transfers import fed, moved
from tests.tasks_app.transfers.storage_scene import Storages, configure

pytestmark = pytest.mark.usefixtures("books")


@pytest.fixture
def site(tmp_path: Any, settings: Any, books: None) -> Iterator[Storages]:
    yield from test_transfers.site.__wrapped__(tmp_path, settings, books)  # type: ignore[attr-defined]


def dead_queue(site: Storages) -> int:
    """A task whose two jobs have written unmerged files at the satellite, whose queue is then taken off."""
    made = fed(site, 2, "FAR_DISK", prodSourceLabel="managed", cpuTime=10, mergeOutput=True, mergeSpec=MERGE)
    task_broker.run(draw=lambda: 0.0)
    assert task(made).nucleus == "CERN"
    Queue.objects.filter(name="CERN_Q").update(status="offline")
    job_generator.run()
    assert RealPilot(site="FAR_Q").work() == 2
    adder.run()
    assert states(made) == {"merging": 2}
    unmerged = CatalogueFile.objects.filter(dataset__name__startswith="panda.um.")
    assert {file.endpoint for file in unmerged} == {"FAR_DISK"}, "they stay where they were written"
    Queue.objects.filter(name="CERN_Q").update(status="online")
    Queue.objects.filter(name="FAR_Q").update(status="offline")
    return made


def give_up(made: int) -> None:
    """Nobody takes the merge jobs for longer than a day."""
    begin = timezone.now()
    assert merger.run(now=begin).items == 0
    assert "FAR_Q: the site's status is offline" in (task(made).error_dialog or "")
    assert merger.run(now=begin + timedelta(hours=25)).items == 1


def test_they_are_copied_to_another_queue_and_merged_there(site: Storages) -> None:
    made = dead_queue(site)
    give_up(made)
    (merge,) = merge_jobs(made)
    assert (merge.site, merge.status, len(inputs(merge.id))) == ("CERN_Q", "assigned", 4)
    pilot = RealPilot(site="CERN_Q")
    assert pilot.work() == 0, "nothing is handed out whose input is not there"
    (rule,) = TransferRule.objects.filter(kind="copy")
    assert (rule.destination, rule.job_id, rule.files) == ("CERN_DISK", merge.id, 4)
    settle(moved)
    read = JobFile.objects.filter(job_id=merge.id, type="input")
    assert {path_of(file.surl or "").is_relative_to(site.root / "CERN_DISK") for file in read} == {True}
    settle(pilot.work, moved)
    assert (status(made), states(made)) == ("done", {"finished": 3})
    assert CatalogueFile.objects.filter(dataset__name="lab.t.out").count() == 1
    left = [path for path in site.root.rglob("panda.um.*.root*") if path.is_file()]
    assert not left, "unmerged outputs and their copies are removed with the task's end"


def test_they_are_made_again_when_they_can_be_had_nowhere(site: Storages) -> None:
    configure("TRANSFER_ATTEMPTS", 1)
    made = dead_queue(site)
    for path in [path for path in site.root.rglob("panda.um.*") if path.is_file()]:
        path.unlink()
    give_up(made)
    settle(moved)
    for _ in range(2):
        assert merger.run(now=timezone.now() + timedelta(hours=25)).items == 1, "once is enough of waiting"
        settle(RealPilot(site="CERN_Q").work, moved)
    assert [job.ddm_error_code or job.pilot_error_code for job in merge_jobs(made)][:3] == [200, 1103, 1103]
    assert status(made) == "done"
    assert states(made) == {"failed": 3, "cancelled": 2, "finished": 3}
    assert {job.site for job in jobs(made, status="finished")} == {"CERN_Q"}


def test_a_queue_without_a_storage_here_reads_them_where_they_are(site: Storages) -> None:
    made = dead_queue(site)
    StorageEndpoint.objects.filter(name="CERN_DISK").update(path="")
    give_up(made)
    (merge,) = merge_jobs(made)
    assert (merge.site, merge.status) == ("CERN_Q", "activated") and not TransferRule.objects.exists()
