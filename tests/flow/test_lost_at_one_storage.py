"""Files that are gone from one storage of this machine, and of which another one has a copy."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from brokerage_app.grid import configured
from brokerage_app.models import Queue, QueueEndpoint, StorageEndpoint
from tasks_app.agents.watchdogs import replicas
from tasks_app.ddm.addresses import storage_path
from tasks_app.ddm.local_files import file_url, path_of
from tasks_app.models import CatalogueDataset, CatalogueFile, FileReplica, Job, JobFile
from tasks_app.outcomes.recovery import recover
from tests.flow.driving import (
    add_queue,
    dataset,
    files,
    inputs,
    jobs,
    parameters,
    reads,
    settle,
    states,
    status,
    submit,
    task,
)
from tests.flow.real_pilot import RealPilot
from tests.flow.test_file_groups import COMMAND, xml
from tests.tasks_app.transfers.storage_scene import Storages

pytestmark = pytest.mark.usefixtures("books")


@pytest.fixture
def site(tmp_path: Path, settings: Any, books: None) -> Iterator[Storages]:
    """Two queues, each with a storage of its own on this machine."""
    configured.forget()
    Queue.objects.all().delete()
    found = Storages(tmp_path, timezone.now())
    settings.JEDI_STORAGE = found.root / "LOCAL_SE"
    for name, endpoint in (("NORTH", "LOCAL_SE"), ("SOUTH", "SOUTH_DISK")):
        found.add(endpoint, name, space_total_gb=2e6, space_free_gb=5e5)
        disk = StorageEndpoint.objects.get(name=endpoint)
        queue = add_queue(f"{name}_Q", site_name=name, capability="", storage=disk)
        QueueEndpoint.objects.create(queue=queue, endpoint=disk, order_read=1, order_write=1)
    configured.forget()
    yield found
    configured.forget()


def made_in_the_north(site: Storages, files: int = 2) -> int:
    site.dataset("lab.in", "LOCAL_SE", [f"in{n}" for n in range(files)])
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, site="NORTH_Q"))
    settle(RealPilot(site="NORTH_Q").work)
    assert status(made) == "done"
    return made


def copied_south(site: Storages, lfn: str) -> Path:
    """A further replica of an output, as the mover makes it."""
    file = CatalogueFile.objects.get(lfn=lfn)
    place = storage_path(site.root / "SOUTH_DISK", file.scope, lfn)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(path_of(file.url).read_bytes())
    FileReplica.objects.create(scope=file.scope, lfn=lfn, endpoint="SOUTH_DISK", url=file_url(place))
    return place


def test_a_file_that_another_storage_has_is_read_there_and_not_made_again(site: Storages) -> None:
    made = made_in_the_north(site)
    lfn = "lab.t.000001.root"
    kept = copied_south(site, lfn)
    path_of(CatalogueFile.objects.get(lfn=lfn).url).unlink()
    said = StringIO()
    call_command("recover_lost_files", str(made), "--files", lfn, "--dry-run", stdout=said)
    sentences = [
        f"{lfn} is not lost: SOUTH_DISK has a good copy, which is read instead of that in LOCAL_SE; it is not made again",
        f"nothing is made again: task {made} stays done",
    ]
    assert said.getvalue().splitlines() == [*sentences, "nothing was changed"]
    assert CatalogueFile.objects.get(lfn=lfn).endpoint == "LOCAL_SE"
    assert recover(made, [lfn], by="olga").sentences() == sentences
    assert status(made) == "done" and kept.is_file()
    found = CatalogueFile.objects.get(lfn=lfn)
    assert (found.endpoint, found.url) == ("SOUTH_DISK", file_url(kept))
    assert set(FileReplica.objects.filter(lfn=lfn).values_list("endpoint", "status")) == {("LOCAL_SE", "bad")}
    assert not recover(made, [lfn], by="olga").lost and kept.is_file(), "called lost once more, it is kept once more"
    reader = submit(parameters("lab.c", reads("lab.t.out"), nFilesPerJob=2, site="SOUTH_Q"))
    settle(RealPilot(site="SOUTH_Q").work)
    assert JobFile.objects.get(task_id=reader, type="input", lfn=lfn).surl == file_url(kept)


def test_only_what_no_storage_has_is_made_again(site: Storages) -> None:
    made = made_in_the_north(site)
    copies = [copied_south(site, f"lab.t.00000{n}.root") for n in (1, 2)]
    for file in CatalogueFile.objects.filter(dataset__name="lab.t.out"):
        path_of(file.url).unlink()
    copies[1].write_bytes(b"rubbish")
    found = recover(made, ["lab.t.000001.root", "lab:lab.t.000002.root"], by="olga")
    assert [o.lfn for o in found.lost] == ["lab.t.000002.root"] and [one.lfn for one in found.kept] == [
        "lab.t.000001.root"
    ]
    settle(RealPilot(site="NORTH_Q").work)
    assert (status(made), states(made)) == ("done", {"finished": 3})
    assert [path.is_file() for path in copies] == [True, False]
    left = set(CatalogueFile.objects.filter(dataset__name="lab.t.out").values_list("lfn", "endpoint"))
    assert left == {("lab.t.000001.root", "SOUTH_DISK"), ("lab.t.000003.root", "LOCAL_SE")}


def test_a_file_that_is_where_it_was_made_is_not_taken_away_for_being_called_lost(site: Storages) -> None:
    made = made_in_the_north(site)
    lfn = "lab.t.000001.root"
    place = path_of(CatalogueFile.objects.get(lfn=lfn).url)
    found = recover(made, [lfn], by="olga")
    assert found.sentences()[0] == f"{lfn} is not lost: LOCAL_SE has it as its job made it; it is not made again"
    assert place.is_file() and status(made) == "done" and not FileReplica.objects.exists()


def test_jobs_are_told_the_address_of_the_replica_that_their_queue_reads(site: Storages) -> None:
    """The first place is where another queue reads; it may be gone there."""
    site.dataset("lab.in", "LOCAL_SE", ["in0", "in1"])
    copies = {lfn: copied_south(site, lfn) for lfn in ("in0", "in1")}
    for lfn in copies:
        site.path("LOCAL_SE", lfn).unlink()
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, site="SOUTH_Q"))
    settle(RealPilot(site="SOUTH_Q").work)
    assert (status(made), states(made)) == ("done", {"finished": 2})
    told = dict(JobFile.objects.filter(task_id=made, type="input").values_list("lfn", "surl"))
    assert told == {lfn: file_url(place) for lfn, place in copies.items()}


def test_inputs_that_are_gone_from_the_storage_are_made_again_first_and_those_made_again_already_are_not(
    site: Storages,
) -> None:
    first = made_in_the_north(site)
    second = submit(parameters("lab.u", reads("lab.t.out"), nFilesPerJob=1, site="NORTH_Q"))
    settle(RealPilot(site="NORTH_Q").work)
    inputs_gone = ["lab.t.000001.root", "lab.t.000002.root"]
    for lfn in [*inputs_gone, "lab.u.000001.root", "lab.u.000002.root"]:
        path_of(CatalogueFile.objects.get(lfn=lfn).url).unlink()
    recover(first, inputs_gone[:1], by="olga")
    settle(RealPilot(site="NORTH_Q").work)
    found = recover(second, ["lab.u.000001.root", "lab.u.000002.root"], by="olga", dry_run=True)
    assert sorted(i.lfn for i in found.gone) == inputs_gone
    assert [(one.task_id, [o.lfn for o in one.lost]) for one in found.makers] == [(first, inputs_gone[1:])]
    said = found.sentences()
    assert "1 of them lost as well, and made again first: lab.t.000002.root" in said
    assert (
        "1 of them lost as well: what was made in their place, or still is, is read instead: lab.t.000001.root" in said
    )


def test_files_that_are_there_are_processed_without_the_one_that_nobody_has(site: Storages) -> None:
    site.dataset("lab.in", "LOCAL_SE", ["in0", "in1", "in2", "in3"])
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=4, maxAttempt=2, site="NORTH_Q"))
    settle()
    site.path("LOCAL_SE", "in2").unlink()
    settle(RealPilot(site="NORTH_Q").work)
    assert (status(made), states(made)) == ("finished", {"failed": 1, "finished": 1})
    assert [(file.lfn, file.status) for file in files(made)] == [
        ("in0", "finished"),
        ("in1", "finished"),
        ("in2", "lost"),
        ("in3", "finished"),
    ]
    assert "3 of 4 input files were processed; 1 file is lost: no storage has in2." in (task(made).error_dialog or "")


def test_of_a_file_that_is_there_again_while_its_task_ends_the_last_sentence_says_so(site: Storages) -> None:
    made, away = set_aside_one(site)
    pilot = RealPilot(site="NORTH_Q")
    assert pilot.work() == 1
    away.rename(site.path("LOCAL_SE", "in2"))
    FileReplica.objects.filter(lfn="in2").delete()
    settle()
    assert status(made) == "finished"
    said = "1 file is lost: in2, which was not there when it was looked for and is there again"
    assert said in (task(made).error_dialog or "")


GROUPED = [f"lab.in.{number:05d}" for number in range(4)]


def group_set_aside(site: Storages, **more: Any) -> tuple[int, Path]:
    """A task of two groups, of which one lacks a file, and where that has been moved away."""
    site.dataset("lab.in", "LOCAL_SE", GROUPED)
    params = parameters("lab.t", reads("lab.in"), COMMAND, loadXML=xml({"lab.in": [0, 1]}, {"lab.in": [2, 3]}), **more)
    made = submit({**params, "maxAttempt": 2, "site": "NORTH_Q"})
    settle()
    away = site.path("LOCAL_SE", GROUPED[3]).rename(site.root / "away")
    pilot = RealPilot(site="NORTH_Q")
    first = min(job.id for job in jobs(made))
    Job.objects.filter(pk=first).update(status="throttled")
    assert pilot.work() == 1
    settle()
    assert [file.status for file in files(made)] == ["running", "running", "lost", "lost"], (
        "no part of a group is a job"
    )
    Job.objects.filter(pk=first).update(status="activated")
    replicas_pass()
    assert [file.status for file in files(made)][2:] == ["lost", "lost"]
    return made, away


def test_a_group_that_was_set_aside_is_taken_up_as_a_whole_when_its_files_are_there(site: Storages) -> None:
    made, away = group_set_aside(site)
    away.rename(site.path("LOCAL_SE", GROUPED[3]))
    replicas_pass()
    settle(RealPilot(site="NORTH_Q").work)
    assert (status(made), [file.status for file in files(made)]) == ("done", ["finished"] * 4)
    read = sorted(sorted(inputs(job.id)) for job in jobs(made) if job.status == "finished")
    assert read == [GROUPED[:2], GROUPED[2:]]
    row = dataset(made)
    assert (row.files, row.files_missing, row.files_finished) == (4, 0, 4)


def test_a_group_of_which_a_file_is_nowhere_stays_set_aside_and_the_task_says_which(site: Storages) -> None:
    made, _ = group_set_aside(site)
    settle(RealPilot(site="NORTH_Q").work)
    assert (status(made), [file.status for file in files(made)][2:]) == ("finished", ["lost", "lost"])
    said = "group 1 is left out, with 2 files, since no job is made of a group that lacks a file: no storage has lab.in.00003"
    assert said in (task(made).error_dialog or "")


def test_of_a_group_a_second_file_that_has_left_its_dataset_keeps_the_whole_group_away(site: Storages) -> None:
    made, away = group_set_aside(site)
    away.rename(site.path("LOCAL_SE", GROUPED[3]))
    site.dataset("lab.other", "LOCAL_SE", ["other"])
    CatalogueFile.objects.filter(lfn=GROUPED[2]).update(dataset=CatalogueDataset.objects.get(name="lab.other"))
    replicas_pass()
    assert [file.status for file in files(made)][2:] == ["lost", "lost"]


def set_aside_one(site: Storages) -> tuple[int, Path]:
    """A task that goes on without one of its files, and where that has been moved away."""
    site.dataset("lab.in", "LOCAL_SE", ["in0", "in1", "in2"])
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=3, site="NORTH_Q"))
    settle()
    away = site.path("LOCAL_SE", "in2").rename(site.root / "in2")
    assert RealPilot(site="NORTH_Q").work() == 1
    settle()
    assert [file.status for file in files(made)] == ["running", "running", "lost"]
    replicas_pass()
    assert [file.status for file in files(made)][2] == "lost", "nobody has it"
    return made, away


def replicas_pass() -> None:
    replicas.run()
    settle()


def test_a_file_that_was_set_aside_is_taken_up_when_its_storage_has_it_again(site: Storages) -> None:
    made, away = set_aside_one(site)
    away.rename(site.path("LOCAL_SE", "in2"))
    replicas_pass()
    assert not FileReplica.objects.filter(status="bad").exists()
    settle(RealPilot(site="NORTH_Q").work)
    assert (status(made), [file.status for file in files(made)]) == ("done", ["finished"] * 3)


def test_a_file_that_was_set_aside_is_taken_up_when_another_storage_gets_it(site: Storages) -> None:
    made, away = set_aside_one(site)
    place = storage_path(site.root / "SOUTH_DISK", "lab", "in2")
    place.parent.mkdir(parents=True, exist_ok=True)
    away.rename(place)
    FileReplica.objects.create(scope="lab", lfn="in2", endpoint="SOUTH_DISK", url=file_url(place))
    replicas_pass()
    assert [file.status for file in files(made)][2] != "lost"
    row = dataset(made)
    assert (row.files, row.files_missing) == (3, 0)


def test_a_file_of_another_content_or_of_a_task_that_has_ended_stays_set_aside(site: Storages) -> None:
    made, away = set_aside_one(site)
    site.path("LOCAL_SE", "in2").write_bytes(b"something else")
    replicas_pass()
    assert [file.status for file in files(made)][2] == "lost"
    settle(RealPilot(site="NORTH_Q").work)
    assert status(made) == "finished"
    away.rename(site.path("LOCAL_SE", "in2"))
    replicas_pass()
    assert (status(made), [file.status for file in files(made)][2]) == ("finished", "lost")


def test_a_storage_that_is_away_has_lost_nothing(site: Storages) -> None:
    site.dataset("lab.in", "LOCAL_SE", ["in0", "in1"])
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=2, maxAttempt=2, site="NORTH_Q"))
    settle()
    (site.root / "LOCAL_SE").rename(site.root / "away")
    assert RealPilot(site="NORTH_Q").work() == 1
    settle()
    assert states(made) == {"failed": 1, "activated": 1} and not FileReplica.objects.exists()
    (site.root / "away").rename(site.root / "LOCAL_SE")
    settle(RealPilot(site="NORTH_Q").work)
    assert status(made) == "done"


def test_a_file_that_its_job_reads_alone_is_tried_as_often_as_its_task_says(site: Storages) -> None:
    site.dataset("lab.in", "LOCAL_SE", ["in0", "in1"])
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, maxAttempt=2, site="NORTH_Q"))
    settle()
    site.path("LOCAL_SE", "in1").unlink()
    settle(RealPilot(site="NORTH_Q").work)
    assert (status(made), states(made)) == ("finished", {"finished": 1, "failed": 2})


def test_check_outputs_looks_at_the_storages_of_this_machine(site: Storages) -> None:
    made = made_in_the_north(site, 3)
    gone = ["lab.t.000002.root", "lab.t.000003.root"]
    for lfn in gone:
        path_of(CatalogueFile.objects.get(lfn=lfn).url).unlink()
    said = StringIO()
    with pytest.raises(SystemExit):
        call_command("check_outputs", str(made), stdout=said)
    assert f"2 outputs are gone from the storages of this machine: {', '.join(gone)}" in said.getvalue().splitlines()
