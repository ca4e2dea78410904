"""Whole tasks whose data moves: inputs are copied to queues, outputs gathered at a nucleus, on real files."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from brokerage_app.grid import configured
from brokerage_app.models import GdpConfig, Queue, QueueEndpoint, Site, StorageEndpoint
from tasks_app.agents import adder, feeder, job_generator, mover, refiner, task_broker
from tasks_app.agents.watchdogs import job_timeouts
from tasks_app.configured import timeout_limits
from tasks_app.ddm import small_files
from tasks_app.ddm.addresses import storage_path
from tasks_app.ddm.local_files import file_url, path_of
from tasks_app.explaining import why_task
from tasks_app.models import CatalogueFile, File, FileReplica, JobFile, TransferRequest, TransferRule
from tasks_app.outcomes import bad_inputs
from tasks_app.outcomes.missing import missing_outputs
from tasks_app.worker_node.pilot.errors import Code
from tests.flow.balance import assert_books_balance
from tests.flow.driving import add_queue, jobs, parameters, reads, settle, states, status, submit, task, wake
from tests.flow.real_pilot import RealPilot
from tests.flow.test_commands import command
from tests.tasks_app.transfers.storage_scene import Storages, configure, content_of

pytestmark = pytest.mark.usefixtures("books")
TB = 1024.0


@pytest.fixture
def site(tmp_path: Path, settings: Any, books: None) -> Iterator[Storages]:
    """A nucleus and a satellite, each with a queue and a storage of its own on this machine."""
    configured.forget()
    Queue.objects.all().delete()
    found = Storages(tmp_path, timezone.now())
    settings.JEDI_STORAGE = found.add("LOCAL_SE", "LOCAL")
    key = "TASK_BROKER_managed"
    GdpConfig.objects.create(app="jedi", component="brokerage", key=key, value="production", type="str", vo="lab")
    for name, role in (("CERN", "nucleus"), ("FAR", "satellite")):
        Site.objects.create(name=name, role=role)
        found.add(f"{name}_DISK", name, space_total_gb=2000 * TB, space_free_gb=500 * TB)
        disk = StorageEndpoint.objects.get(name=f"{name}_DISK")
        queue = add_queue(f"{name}_Q", site_name=name, capability="", storage=disk)
        QueueEndpoint.objects.create(queue=queue, endpoint=disk, order_read=1, order_write=1)
    configured.forget()
    yield found
    configured.forget()


def fed(site: Storages, files: int, at: str, **more: Any) -> int:
    site.dataset("lab.in", at, [f"in{n}" for n in range(files)])
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, **more))
    refiner.run()
    feeder.run()
    wake()
    return made


def moved() -> int:
    return mover.run().items


def test_an_input_is_copied_to_the_queue_of_its_jobs_before_they_are_handed_out(site: Storages) -> None:
    Queue.objects.filter(name="CERN_Q").delete()
    made = fed(site, 3, "CERN_DISK")
    job_generator.run()
    assert states(made) == {"assigned": 3}
    pilot = RealPilot(site="FAR_Q")
    assert pilot.work() == 0, "nothing is handed out whose input is not there"
    rules = TransferRule.objects.order_by("id")
    assert [(r.kind, r.destination, r.task_id, r.files) for r in rules] == [("copy", "FAR_DISK", made, 1)] * 3
    assert moved()
    assert states(made) == {"activated": 3}
    assert {r.surl for r in JobFile.objects.filter(type="input")} == {
        file_url(site.path("FAR_DISK", f"in{n}")) for n in range(3)
    }
    for n in range(3):
        assert site.path("FAR_DISK", f"in{n}").read_bytes() == content_of(f"in{n}", 1000)
    settle(pilot.work, moved)
    assert (status(made), states(made)) == ("done", {"finished": 3})
    assert not TransferRule.objects.filter(is_settled=False).exists()


@pytest.mark.parametrize(
    "more",
    [{"useJobCloning": "runonce"}, {"nEventsPerWorker": 5, "nEventsPerInputFile": 10, "nEsConsumers": 2}],
    ids=["clones", "consumers"],
)
def test_all_jobs_of_a_jobset_wait_for_their_input(site: Storages, more: dict[str, Any]) -> None:
    Queue.objects.filter(name="CERN_Q").delete()
    Queue.objects.update(job_seed="all")
    made = fed(site, 1, "CERN_DISK", **more)
    job_generator.run()
    assert states(made) == {"assigned": 2}
    first, second = jobs(made)
    assert (first.site, second.site, first.jobset_id) == ("FAR_Q", "FAR_Q", second.jobset_id)
    assert set(TransferRule.objects.values_list("job_id", "destination")) == {
        (first.id, "FAR_DISK"),
        (second.id, "FAR_DISK"),
    }
    assert_books_balance()
    assert moved()
    assert states(made) == {"activated": 2}
    assert {r.surl for r in JobFile.objects.filter(type="input")} == {file_url(site.path("FAR_DISK", "in0"))}


@pytest.mark.parametrize(
    "more",
    [{"useJobCloning": "storeonce"}, {"nEventsPerWorker": 5, "nEventsPerInputFile": 10, "nEsConsumers": 2}],
    ids=["clones", "consumers"],
)
def test_a_jobset_whose_input_cannot_be_brought_gives_its_file_back(site: Storages, more: dict[str, Any]) -> None:
    Queue.objects.filter(name="CERN_Q").delete()
    Queue.objects.update(job_seed="all")
    configure("TRANSFER_ATTEMPTS", 1)
    made = fed(site, 1, "CERN_DISK", maxAttempt=1, **more)
    job_generator.run()
    assert states(made) == {"assigned": 2}
    site.path("CERN_DISK", "in0").unlink()
    settle(moved)
    assert {job.status for job in jobs(made)} <= {"failed", "closed"}
    assert {job.ddm_error_code for job in jobs(made)} == {200}
    assert status(made) == "failed"
    assert_books_balance()


def test_what_is_at_the_queue_waits_for_nothing(site: Storages) -> None:
    made = fed(site, 2, "FAR_DISK")
    Queue.objects.filter(name="CERN_Q").delete()
    job_generator.run()
    assert states(made) == {"activated": 2} and not TransferRule.objects.exists()


def test_outputs_are_gathered_at_the_nucleus_and_jobs_are_transferring_until_then(
    site: Storages, client: Client
) -> None:
    made = fed(site, 2, "FAR_DISK", prodSourceLabel="managed", cpuTime=10)
    task_broker.run(draw=lambda: 0.0)
    assert task(made).nucleus == "CERN"
    Queue.objects.filter(name="CERN_Q").update(status="offline")
    job_generator.run()
    mover.run()
    assert {job.site for job in jobs(made)} == {"FAR_Q"}
    pilot = RealPilot(site="FAR_Q")
    assert pilot.work() == 2
    adder.run()
    assert states(made) == {"transferring": 2}
    assert not CatalogueFile.objects.filter(dataset__name="lab.t.out").exists(), "not before they have arrived"
    assert TransferRule.objects.filter(kind="gather", status="queued").count() == 2
    blocked = why_task.why(task(made))["blocked_by"]
    assert (blocked["code"], blocked["name"]) == ("job_output_moves", "running")
    left = "2 jobs wait for their outputs to be brought to CERN_DISK, "
    assert left in blocked["sentence"] and blocked["sentence"].endswith(" B left")
    client.force_login(User.objects.create_user("reader"))
    waits = client.get(f"/jobs/{jobs(made)[0].id}/why/").content.decode()
    assert "ts outputs are being brought to CERN_DISK, " in waits and '<a href="/transfers/">Transfers</a>' in waits
    for page in (f"/tasks/{made}/", f"/tasks/{made}/why/"):
        shown = client.get(page).content.decode()
        assert left in shown and '<a href="/transfers/">Transfers</a>' in shown
    settle(moved)
    assert (status(made), states(made)) == ("done", {"finished": 2})
    outputs = CatalogueFile.objects.filter(dataset__name__in=["lab.t.out", "lab.t.log"])
    assert {file.endpoint for file in outputs} == {"CERN_DISK"} and len(outputs) == 4
    for file in outputs:
        path = path_of(file.url)
        assert path.is_relative_to(site.root / "CERN_DISK") and path.read_bytes() == file.lfn.encode() * 10
    assert FileReplica.objects.filter(endpoint="FAR_DISK", status="available").count() == 4


def test_a_copy_that_cannot_be_made_fails_its_job_with_the_cause(site: Storages) -> None:
    Queue.objects.filter(name="CERN_Q").delete()
    configure("TRANSFER_ATTEMPTS", 1)
    made = fed(site, 1, "CERN_DISK", maxAttempt=1)
    site.path("CERN_DISK", "in0").unlink()
    job_generator.run()
    moved()
    job = jobs(made)[0]
    assert (job.status, job.ddm_error_code) == ("failed", 200)
    assert job.ddm_error_diag == "in0 could not be copied to FAR_DISK: it is not in the storage at CERN_DISK"
    settle(moved)
    assert status(made) == "failed"


def test_transfers_of_a_killed_task_are_cancelled_and_leave_nothing(site: Storages) -> None:
    Queue.objects.filter(name="CERN_Q").delete()
    configure("LINK_RATE", 0.0001)
    made = fed(site, 2, "CERN_DISK")
    job_generator.run()
    mover.run(now=timezone.now())
    mover.run(now=timezone.now() + timedelta(seconds=2))
    assert site.parts()
    command(made, "kill")
    settle(moved)
    assert status(made) == "aborted"
    assert set(TransferRule.objects.values_list("status", flat=True)) == {"cancelled"}
    assert not site.parts() and not TransferRequest.objects.filter(status="active").exists()


@pytest.mark.parametrize("how", ["killed", "overdue", "arrived"])
def test_a_job_that_is_ended_while_it_transfers_keeps_its_log_and_its_outputs_go(site: Storages, how: str) -> None:
    """Its log stays where the pilot left it, or where it has been brought by then."""
    made = gathered(site, maxAttempt=1)
    log = JobFile.objects.get(task_id=made, type="log")
    if how == "arrived":
        (output,) = TransferRequest.objects.exclude(lfn=log.lfn)
        storage_path(site.root / "FAR_DISK", output.scope, output.lfn).rename(site.root / "held")
        mover.run()
        assert TransferRequest.objects.get(lfn=log.lfn).status == "done"
    else:
        configure("LINK_RATE", 0.0001)
    if how == "overdue":
        ended = job_timeouts.run(now=timezone.now() + timeout_limits.limit("job.transferring") + timedelta(seconds=1))
        assert ended.items == 1
    else:
        command(made, "kill")
    settle(moved)
    (job,) = jobs(made)
    assert job.status == ("failed" if how == "overdue" else "cancelled")
    kept = CatalogueFile.objects.get(lfn=log.lfn)
    assert kept.endpoint == ("CERN_DISK" if how == "arrived" else "FAR_DISK")
    assert path_of(kept.url).read_bytes() == log.lfn.encode() * 10
    assert File.objects.get(task_id=made, type="log").status == "finished"
    assert not [p for p in site.root.rglob("*lab.t*") if p.is_file() and p.name != log.lfn]


def test_inputs_of_a_paused_task_are_copied_and_its_jobs_held_back(site: Storages) -> None:
    Queue.objects.filter(name="CERN_Q").delete()
    made = fed(site, 1, "CERN_DISK")
    job_generator.run()
    command(made, "pause")
    settle(moved)
    assert states(made) == {"throttled": 1}
    command(made, "resume")
    settle(moved, RealPilot(site="FAR_Q").work)
    assert status(made) == "done"


@pytest.mark.parametrize("how", ["corrupt", "missing", "missing, says the local pilot", "its original is gone"])
def test_a_bad_copy_that_a_pilot_finds_is_marked_and_another_one_is_read(site: Storages, how: str) -> None:
    """At the queue's own storage; the other copy lies elsewhere."""
    Queue.objects.filter(name="CERN_Q").delete()
    site.dataset("lab.in", "FAR_DISK", ["in0", "in1"])
    site.put("CERN_DISK", "in0", content_of("in0", 1000))
    other = file_url(site.path("CERN_DISK", "in0"))
    FileReplica.objects.create(scope="lab", lfn="in0", endpoint="CERN_DISK", url=other)
    if how == "corrupt":
        site.put("FAR_DISK", "in0", b"x" * 1000)
    else:
        site.path("FAR_DISK", "in0").unlink()
    if how == "its original is gone":
        original = site.root / "removed by its owner"
        site.path("FAR_DISK", "in0").symlink_to(original)
        CatalogueFile.objects.filter(lfn="in0").update(url=file_url(original))
    pilot = RealPilot(site="FAR_Q")
    if how not in ("corrupt", "missing"):
        pilot.missing_code = Code.INPUT_MISSING
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, maxAttempt=3))
    settle(moved, pilot.work)
    assert (status(made), states(made)) == ("done", {"failed": 1, "finished": 2})
    bad = FileReplica.objects.get(endpoint="FAR_DISK")
    assert bad.status == "bad" and bad.reason.startswith("a job could not read it: it ")
    assert CatalogueFile.objects.get(lfn="in0", dataset__name="lab.in").endpoint == "CERN_DISK"


def gathered(site: Storages, **more: Any) -> int:
    """A task whose jobs ran at the satellite, and whose outputs are on their way to the nucleus."""
    made = fed(site, 1, "FAR_DISK", prodSourceLabel="managed", cpuTime=10, **more)
    task_broker.run(draw=lambda: 0.0)
    Queue.objects.filter(name="CERN_Q").update(status="offline")
    job_generator.run()
    RealPilot(site="FAR_Q").work()
    adder.run()
    assert states(made) == {"transferring": 1}
    return made


def test_gathered_outputs_can_be_downloaded_and_are_missed_when_no_storage_has_them(
    site: Storages, api: Callable[..., Client]
) -> None:
    made = gathered(site)
    settle(moved)
    output = File.objects.get(task_id=made, type="output")
    answer: Any = api().get(f"/api/v2/files/{output.id}/content")
    assert answer.status_code == 200, answer.content
    assert b"".join(answer.streaming_content) == output.lfn.encode() * 10
    log = File.objects.get(task_id=made, type="log")
    assert small_files.path_of(log.surl, log.lfn, scope=log.scope).is_relative_to(site.root / "CERN_DISK")
    assert missing_outputs(made, 10) == []
    path_of(output.surl or "").unlink()
    assert missing_outputs(made, 10) == [], "another storage of this site has it"
    answer = api().get(f"/api/v2/files/{output.id}/content")
    assert b"".join(answer.streaming_content) == output.lfn.encode() * 10
    storage_path(site.root / "FAR_DISK", output.scope or "", output.lfn).unlink()
    assert missing_outputs(made, 10) == [output.lfn]
    answer = api().get(f"/api/v2/files/{output.id}/content")
    assert answer.status_code == 404 and "no longer in this site's storage" in answer.json()["detail"]


@pytest.mark.parametrize("more", [{"destination": "CERN_DISK"}, {"stayOutputOnSite": True}], ids=["named", "stays"])
def test_outputs_at_a_second_storage_of_this_machine_can_be_downloaded(
    site: Storages, api: Callable[..., Client], more: dict[str, Any]
) -> None:
    GdpConfig.objects.filter(key="TASK_BROKER_managed").delete()
    site.dataset("lab.in", "CERN_DISK", ["in0"])
    made = submit(parameters("lab.t", reads("lab.in"), site="CERN_Q", **more))
    settle(RealPilot(site="CERN_Q").work, moved)
    output = File.objects.get(task_id=made, type="output")
    assert path_of(output.surl or "").is_relative_to(site.root / "CERN_DISK")
    answer: Any = api().get(f"/api/v2/files/{output.id}/content")
    assert answer.status_code == 200, answer.content
    assert b"".join(answer.streaming_content) == output.lfn.encode() * 10


@pytest.mark.parametrize(("label", "endpoint"), [("managed", "NORTH_DISK"), ("user", "NORTH_USER")])
def test_outputs_without_a_destination_go_where_their_queue_writes_first_and_can_be_fetched_and_read_there(
    site: Storages, api: Callable[..., Client], label: str, endpoint: str
) -> None:
    """Whatever the queue names beside its list."""
    GdpConfig.objects.filter(key="TASK_BROKER_managed").delete()
    queue = add_queue("NORTH_Q", site_name="NORTH", capability="", storage_id="FAR_DISK")
    listed = (("NORTH_OLD", "default", 2), ("NORTH_DISK", "default", 1), ("NORTH_USER", "analysis", 1))
    for name, scope, order in listed:
        site.add(name, "NORTH", space_total_gb=2000 * TB, space_free_gb=500 * TB)
        QueueEndpoint.objects.create(queue=queue, endpoint_id=name, scope=scope, order_read=order, order_write=order)
    configured.forget()
    described = Client().get("/cache/schedconfig/NORTH_Q.all.json").json()["astorages"]
    assert described["write_lan"] == ["NORTH_DISK", "NORTH_OLD"] and described["write_lan_analysis"] == ["NORTH_USER"]
    site.dataset("lab.in", "NORTH_DISK", ["in0"])
    made = submit(parameters("lab.t", reads("lab.in"), site="NORTH_Q", prodSourceLabel=label))
    child = submit(parameters("lab.c", reads("lab.t.out"), site="NORTH_Q", prodSourceLabel=label))
    settle(RealPilot(site="NORTH_Q").work, moved)
    assert (status(made), status(child)) == ("done", "done")
    for output in CatalogueFile.objects.filter(dataset__name__in=["lab.t.out", "lab.t.log", "lab.c.out"]):
        assert output.endpoint == endpoint and path_of(output.url).is_relative_to(site.root / endpoint)
        path = path_of(output.url)
        assert small_files.path_of(output.url, output.lfn, scope=output.scope) == path
        if output.dataset.name.endswith(".log"):
            continue
        file = File.objects.get(lfn=output.lfn, type="output")
        answer: Any = api().get(f"/api/v2/files/{file.id}/content")
        assert b"".join(answer.streaming_content) == output.lfn.encode() * 10
    assert not TransferRule.objects.exclude(kind="copy").exists(), "they are where they belong"


def test_what_lies_in_a_storage_that_cannot_be_seen_is_not_judged(site: Storages) -> None:
    made = gathered(site)
    settle(moved)
    for name in ("CERN_DISK", "FAR_DISK"):
        shutil.rmtree(site.root / name)
    assert missing_outputs(made, 10) == []


def test_a_gathering_that_fails_keeps_the_log_of_its_job(site: Storages) -> None:
    made = gathered(site, maxAttempt=1)
    configure("TRANSFER_ATTEMPTS", 1)
    output, log = (JobFile.objects.get(task_id=made, type=kind) for kind in ("output", "log"))
    storage_path(site.root / "FAR_DISK", output.scope or "", output.lfn).unlink()
    for one in (output, log):
        other = storage_path(site.root / "CERN_DISK", one.scope or "", one.lfn)
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_text("another file")
    settle(moved)
    job = jobs(made)[0]
    assert (job.status, job.ddm_error_code) == ("failed", 202)
    kept = CatalogueFile.objects.get(lfn=log.lfn)
    assert kept.endpoint == "FAR_DISK" and path_of(kept.url).is_relative_to(site.root / "FAR_DISK")
    assert path_of(kept.url).read_bytes() == log.lfn.encode() * 10
    assert File.objects.get(task_id=made, type="log").surl == kept.url
    assert not CatalogueFile.objects.filter(lfn=output.lfn).exists()


def test_the_checksum_of_a_large_file_is_worked_out_by_the_mover(
    site: Storages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another copy is read by the next attempt, and the bad one is made good from it."""
    monkeypatch.setattr(bad_inputs, "MOST_BYTES", 100)
    Queue.objects.filter(name="CERN_Q").delete()
    site.dataset("lab.in", "FAR_DISK", ["in0", "in1"])
    site.put("CERN_DISK", "in0", content_of("in0", 1000))
    other = file_url(site.path("CERN_DISK", "in0"))
    FileReplica.objects.create(scope="lab", lfn="in0", endpoint="CERN_DISK", url=other)
    site.put("FAR_DISK", "in0", b"x" * 1000)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, maxAttempt=5))
    settle(moved, RealPilot(site="FAR_Q").work)
    assert (status(made), states(made)["finished"]) == ("done", 2)
    assert site.path("FAR_DISK", "in0").read_bytes() == content_of("in0", 1000)
    assert not FileReplica.objects.filter(status="bad").exists()
