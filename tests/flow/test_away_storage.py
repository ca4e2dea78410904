"""Inputs in a storage whose folder is away: attempts are kept, nothing is read there, and all comes back with it."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from brokerage_app.grid import configured
from brokerage_app.models import Queue, QueueEndpoint, StorageEndpoint, StorageFolder, StorageTrouble
from jedisite.database.sql import hot_cursor
from tasks_app.agents import adder, attention
from tasks_app.agents.watchdogs import replicas, site_statistics
from tasks_app.ddm.local_files import file_url
from tasks_app.dispatch import closed_queues, queue_storages
from tasks_app.dispatch.reports import update_job
from tasks_app.explaining import why_job, why_task
from tasks_app.models import AttentionItem, CatalogueFile, File, FileReplica, Job, JobFile, RetryNote
from tasks_app.outcomes import away_folders, unstored
from tasks_app.worker_node.pilot.folder_away import EMPTY
from tests.flow.driving import SITE, files, jobs, parameters, reads, settle, states, status, submit, task
from tests.flow.pilot import Job as Fetched
from tests.flow.pilot import report
from tests.flow.real_pilot import RealPilot
from tests.tasks_app.transfers.storage_scene import Storages, content_of

pytestmark = pytest.mark.usefixtures("books")
MINUTE = timedelta(minutes=1)


@pytest.fixture
def site(tmp_path: Path, tables: None) -> Iterator[Storages]:
    """One queue that reads at two storages of this machine and writes to a third."""
    configured.forget()
    found = Storages(tmp_path, timezone.now())
    for order, name in enumerate(("IN", "MORE"), 1):
        found.add(name, SITE)
        QueueEndpoint.objects.create(queue_id=SITE, endpoint_id=name, order_read=order)
    found.add("OUT", SITE)
    QueueEndpoint.objects.create(queue_id=SITE, endpoint_id="OUT", order_write=1)
    Queue.objects.filter(name=SITE).update(storage_id="OUT")
    yield found
    configured.forget()


def running(site: Storages, count: int) -> int:
    site.dataset("lab.in", "IN", [f"in{n}" for n in range(count)])
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, maxAttempt=1))
    settle()
    return made


def unmount(site: Storages, name: str = "IN") -> Path:
    (site.root / name).rename(site.root / "elsewhere")
    return site.root / name


def mount(site: Storages, name: str = "IN") -> None:
    (site.root / "elsewhere").rename(site.root / name)


def look(after: timedelta = timedelta(0)) -> None:
    site_statistics.run(now=timezone.now() + after)
    forget()


def forget() -> None:
    for one in (closed_queues, queue_storages, unstored):
        one.forget()


def fail(*failing: Fetched, diag: str, code: int = 1099) -> None:
    for job in failing:
        update_job(report(job, "starting"))
        update_job(report(job, "failed", errors={"pilot_error_code": code, "pilot_error_diag": diag}))
    adder.run()
    forget()


def test_jobs_that_met_a_folder_away_keep_their_attempts_and_close_it(site: Storages) -> None:
    """By the words of pilots alone: the site itself has never seen the folder."""
    made = running(site, 5)
    pilot = RealPilot()
    begun = pilot.fetch(3)
    why = f"{site.root / 'IN'} is not there"
    diag = f"The folder of the storage is away: {why}. Input in0 could not be read"
    fail(*begun[:2], diag=diag)
    assert StorageEndpoint.objects.get(name="IN").closed_until is None, "two may be bad luck"
    fail(begun[2], diag=diag)
    disk = StorageEndpoint.objects.get(name="IN")
    assert disk.closed_until is not None and disk.closed_reads
    assert sorted((one.attempt, one.max_attempt) for one in files(made)) == [(0, 1)] * 2 + [(1, 2)] * 3
    assert set(RetryNote.objects.values_list("code", "applied")) == {("retry_storage_away", True)}
    assert not FileReplica.objects.exists(), "no file is blamed"
    failed = Job.objects.filter(status="failed").first()
    assert failed is not None
    assert str(why_job.why(failed)["gates"][0]["sentence"]).startswith(f"The folder of the storage is away: {why}")
    said = f"the folder of the storage IN is away (“{why}”); it is tried again at {disk.closed_until:%H:%M} UTC"
    settle()
    waiting = jobs(made, status="activated")
    assert len(waiting) == 2, "no job is made that would read there"
    assert pilot.fetch() == [], "nor is one handed out"
    assert closed_queues.why_closed(SITE) == "", "the queue has other work"
    assert said in str(why_job.why(waiting[0]))
    assert said in str(why_task.why(task(made)))
    attention.run()
    (item,) = AttentionItem.objects.filter(kind="away_storage")
    assert item.sentence.startswith(f"The folder of the storage IN is away: {why}, seen ")
    assert f"are not sent to {SITE}" in item.sentence
    look(disk.closed_until + timedelta(seconds=1) - timezone.now())
    settle(pilot.work)
    assert status(made) == "done" and not StorageTrouble.objects.exists()


def test_the_tenth_attempt_counts(site: Storages) -> None:
    made = running(site, 1)
    (job,) = RealPilot().fetch()
    File.objects.filter(task_id=made, type="input").update(attempt=9, max_attempt=10)
    fail(job, diag=f"The folder of the storage is away: {site.root / 'IN'} is not there. Input in0 could not be read")
    assert [(one.attempt, one.max_attempt) for one in files(made)] == [(10, 10)]


def test_a_folder_that_is_away_is_found_before_jobs_meet_it(site: Storages) -> None:
    made = running(site, 2)
    look()
    assert set(StorageFolder.objects.values_list("endpoint_id", "away", "holds_files")) == {
        ("IN", "", True),
        ("MORE", "", False),
        ("OUT", "", False),
    }
    folder = unmount(site)
    look(MINUTE)
    disk = StorageEndpoint.objects.get(name="IN")
    assert (disk.closed_reads, disk.closed_why) == (True, f"{folder} is not there")
    assert RealPilot().fetch() == []
    said = f"inputs cannot be read: the folder of the storage IN is away (“{folder} is not there”)"
    assert f"2 jobs wait at {SITE}: {said}" in str(why_task.why(task(made)))
    assert f"its {said}" in str(why_job.why(jobs(made)[0]))
    attention.run()
    (item,) = AttentionItem.objects.filter(kind="away_storage")
    seen = StorageFolder.objects.get(endpoint_id="IN").looked_at
    assert f"{folder} is not there, seen {seen:%Y-%m-%d %H:%M} UTC" in item.sentence
    until = disk.closed_until
    look(2 * MINUTE)
    assert StorageEndpoint.objects.get(name="IN").closed_until == until, "the grid does not change each minute"
    look(10 * MINUTE)
    later = StorageEndpoint.objects.get(name="IN")
    assert later.closed_until and until and later.closed_until > until
    mount(site)
    look(11 * MINUTE)
    assert StorageEndpoint.objects.get(name="IN").closed_until is None and not StorageTrouble.objects.exists()
    settle(RealPilot().work)
    assert (status(made), states(made)) == ("done", {"finished": 2})
    attention.run()
    assert AttentionItem.objects.get(kind="away_storage").gone_at is not None


def test_a_storage_that_this_site_has_never_seen_may_be_of_other_machines(site: Storages) -> None:
    unmount(site)
    look()
    assert StorageEndpoint.objects.filter(closed_until=None).count() == 3


def test_a_folder_without_anything_is_away_when_files_are_registered_there(site: Storages) -> None:
    """The place at which a disk is mounted stays, and is empty. So is a storage whose files left the catalogue."""
    made = running(site, 2)
    look()
    unmount(site).mkdir()
    pilot = RealPilot()
    assert pilot.work() == 2
    adder.run()
    assert states(made) == {"failed": 2}
    assert {one.max_attempt for one in files(made)} == {2}, "the attempts were spared"
    replicas.run()
    assert not FileReplica.objects.exists() and {one.status for one in files(made)} == {"ready"}, "nothing is set aside"
    said = Job.objects.filter(status="failed").values_list("pilot_error_code", "pilot_error_diag").first()
    assert said is not None and said[0] == 1099
    why = f"{site.root / 'IN'} is empty, although files are registered there"
    assert said[1].startswith(f"The folder of the storage is away: {why}. The pilot said: in")
    look(MINUTE)
    assert StorageEndpoint.objects.get(name="IN").closed_reads
    (site.root / "IN" / "log").touch()
    look(MINUTE)
    why = f"{site.root / 'IN'} has none of the files that are registered there"
    assert StorageEndpoint.objects.get(name="IN").closed_reads, "what a running job has written there is no disk"
    assert StorageFolder.objects.get(endpoint_id="IN").away in why
    (site.root / "IN" / "log").unlink()
    (site.root / "IN").rmdir()
    mount(site)
    look(2 * MINUTE)
    settle(pilot.work)
    assert status(made) == "done"
    CatalogueFile.objects.filter(endpoint="IN").delete()
    unmount(site).mkdir()
    look(3 * MINUTE)
    assert StorageEndpoint.objects.get(name="IN").closed_until is None
    assert not StorageFolder.objects.get(endpoint_id="IN").holds_files


def test_a_file_that_is_missing_alone_is_blamed_as_before(site: Storages) -> None:
    made = running(site, 2)
    look()
    site.path("IN", "in0").unlink()
    RealPilot().work()
    adder.run()
    assert states(made) == {"failed": 1, "finished": 1}
    assert FileReplica.objects.get().status == "bad"
    assert not RetryNote.objects.filter(code="retry_storage_away").exists() and not StorageTrouble.objects.exists()


def test_queued_jobs_read_the_copy_at_another_storage_of_their_queue(site: Storages) -> None:
    made = running(site, 2)
    for lfn in ("in0", "in1"):
        other = site.put("MORE", lfn, content_of(lfn, 1000))
        FileReplica.objects.create(scope="lab", lfn=lfn, endpoint="MORE", url=file_url(other))
    look()
    unmount(site)
    look(MINUTE)
    assert {one.surl for one in JobFile.objects.filter(type="input")} == {
        file_url(site.path("MORE", f"in{n}")) for n in range(2)
    }
    settle(RealPilot().work)
    assert (status(made), states(made)) == ("done", {"finished": 2})


def test_a_job_that_reads_there_opens_it_but_not_for_outputs(site: Storages) -> None:
    made = running(site, 1)
    (job,) = jobs(made)
    for away in (True, False):
        StorageTrouble.objects.all().delete()
        StorageTrouble.objects.create(
            endpoint_id="IN", failures=3, since=timezone.now(), last=timezone.now(), away=away
        )
        unstored.forget()
        with hot_cursor() as cursor:
            unstored.note_stored(cursor, [job.id])
        assert StorageTrouble.objects.exists() is not away


def test_a_queue_all_of_whose_inputs_are_away_is_closed(site: Storages) -> None:
    running(site, 1)
    look()
    for name in ("IN", "MORE"):
        (site.root / name).rename(site.root / f"{name} elsewhere")
    look(MINUTE)
    assert "the folder of the storage IN is away" in closed_queues.why_closed(SITE)


def test_a_disk_that_does_not_answer_holds_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dead, ends = tmp_path / "dead", threading.Event()
    waiting = threading.Thread(target=ends.wait, daemon=True)
    waiting.start()
    monkeypatch.setattr(away_folders, "LOOK_S", 0.1)
    monkeypatch.setitem(away_folders._looks, dead, (waiting, []))
    for _ in range(2):
        seen = away_folders.looked_at([dead, tmp_path])
        assert {folder: one.why for folder, one in seen.items()} == {dead: "does not answer", tmp_path: EMPTY}
    assert away_folders._looks == {dead: (waiting, [])}, "no further thread waits for it"
    ends.set()


def test_files_that_were_moved_to_another_disk_are_there(site: Storages) -> None:
    running(site, 2)
    look()
    before = StorageFolder.objects.get(endpoint_id="IN").inode
    shutil.copytree(site.root / "IN", site.root / "new")
    unmount(site)
    (site.root / "new").rename(site.root / "IN")
    look(MINUTE)
    assert StorageFolder.objects.get(endpoint_id="IN").inode != before
    assert StorageEndpoint.objects.get(name="IN").closed_until is None
