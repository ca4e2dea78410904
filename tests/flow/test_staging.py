"""Inputs that lie on tape: real files are brought to disk, and jobs get them by bunches as they arrive."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone

from brokerage_app.grid import configured
from brokerage_app.models import StorageEndpoint
from jedisite.models import Trouble
from tasks_app.agents import data_carousel, feeder, refiner
from tasks_app.agents.watchdogs import user_caps
from tasks_app.ddm.local_files import file_url
from tasks_app.domain.progress import of_datasets
from tasks_app.explaining.why_task import why
from tasks_app.inputs import staging
from tasks_app.lists.file_columns import FILES
from tasks_app.models import CatalogueDataset, File, FileReplica, JobFile, TaskStatusLog, TransferRequest, TransferRule
from tasks_app.outcomes.task_progress import book_progress
from tasks_app.submission import command_queue
from tasks_app.transfers import link_use
from tests.flow.balance import assert_books_balance
from tests.flow.driving import add_dataset, dataset, files, look_again, parameters, reads, settle, status, submit, task
from tests.flow.pilot import Pilot, drive
from tests.tasks_app.lifecycle.test_troubles import planted
from tests.tasks_app.transfers.storage_scene import Storages, configure

pytestmark = pytest.mark.usefixtures("books")


@pytest.fixture
def site(tables: None, tmp_path: Path) -> Iterator[Storages]:
    configured.forget()
    found = Storages(tmp_path)
    found.add("TAPE", is_tape=True)
    found.add("DISK")
    configure("TAPE_LATENCY", 0)
    yield found
    configured.forget()


def lfns(*numbers: int) -> list[str]:
    return [f"lab.in.{number:05d}" for number in numbers]


def staged_task(name: str = "lab.t", by: str = "inputPreStaging", **more: Any) -> int:
    wishes = {by: True, "nFilesPerJob": 1, "nChunksToWait": 2, **more}
    return submit(parameters(name, reads("lab.in"), **wishes))


def by_status(task_id: int) -> dict[str, int]:
    return dict(Counter(f.status for f in files(task_id)))


def carry(*others: Any) -> None:
    settle(lambda: data_carousel.run().items, *others)


def moves(task_id: int) -> list[str]:
    return list(TaskStatusLog.objects.filter(task_id=task_id).order_by("id").values_list("status", flat=True))


def test_jobs_are_made_of_the_first_bunch_while_other_files_are_still_on_tape(
    site: Storages, client: Client, make_user: Callable[..., User]
) -> None:
    configure("TAPE_DRIVES", 2)
    configure("LINK_RATE", 0.001, "TAPE:DISK")  # a file of 1000 bytes a second
    site.dataset("lab.in", "TAPE", lfns(*range(5)))
    made = staged_task()
    carry()
    assert (status(made), by_status(made)) == ("staging", {"staging": 5})
    assert task(made).error_dialog == "waits for files from tape", "numbers would be those of the first look"
    assert TaskStatusLog.objects.filter(task_id=made).latest("id").reason == "5 files have to come from tape"
    handled = next(gate for gate in why(task(made))["gates"] if gate["name"] == "agent")
    assert "data_carousel" in handled["sentence"] and why(task(made))["position"]["next_pass"] is not None
    rule = TransferRule.objects.get()
    assert (rule.kind, rule.destination, rule.files, rule.task_id) == ("stage", "DISK", 5, made)
    site.turn()
    site.turn(3)
    TransferRequest.objects.filter(status="done").update(ended=timezone.now())
    sentence = next(gate["sentence"] for gate in why(task(made))["gates"] if gate["name"] == "inputs")
    assert re.fullmatch(
        r"waits for 3 of 5 files from tape, about 2 arrive a minute \(as of .* UTC\); "
        r"the link from TAPE to DISK gives 0\.001 MB/s in all, and has 3 files to copy \(1 file\); "
        r"1\.0 kB of 2\.0 kB copied so far, over a link that gives 0\.001 MB/s in all \(2 files\)",
        sentence,
    ), sentence
    carry()
    assert (status(made), by_status(made)) == ("running", {"running": 2, "staging": 3})
    assert staging.staged_of(made) == {"lab.in": (2, 5)}
    assert moves(made)[-4:] == ["staging", "defined", "ready", "running"]
    client.force_login(make_user("reader"))
    assert "2 of 5 staged from tape" in client.get(f"/tasks/{made}/inputs/").content.decode()
    pilot = Pilot()
    carry(pilot.work)
    assert (len(pilot.ran), by_status(made)) == (2, {"finished": 2, "staging": 3})
    for _ in range(20):
        site.turn(3)
    carry(pilot.work)
    assert (status(made), by_status(made), len(pilot.ran)) == ("done", {"finished": 5}, 5)
    on_disk = sorted(file_url(site.path("DISK", lfn)) for lfn in lfns(*range(5)))
    assert sorted(JobFile.objects.filter(type="input", task_id=made).values_list("surl", flat=True)) == on_disk
    assert [site.path("DISK", lfn).read_bytes() for lfn in lfns(0)] == [site.path("TAPE", lfns(0)[0]).read_bytes()]


@pytest.mark.parametrize("key", ["inputPreStaging", "toStaging", "panda_data_carousel"])
def test_inputs_on_disk_are_not_waited_for_and_each_parameter_stages_the_others(site: Storages, key: str) -> None:
    site.dataset("lab.in", "DISK", lfns(0, 1))
    site.dataset("lab.in", "TAPE", lfns(2))
    made = staged_task(by=key)
    carry()
    assert (status(made), by_status(made)) == ("running", {"running": 2, "staging": 1})
    assert TransferRule.objects.get().files == 1
    site.turn()
    carry(Pilot().work)
    assert (status(made), by_status(made)) == ("done", {"finished": 3})


def test_without_the_parameter_nothing_is_staged(site: Storages) -> None:
    site.dataset("lab.in", "TAPE", lfns(0))
    made = staged_task(inputPreStaging=False)
    drive(Pilot())
    assert (status(made), TransferRule.objects.filter(kind="stage").exists()) == ("done", False)


def test_a_file_that_cannot_be_staged_is_missing_and_the_task_goes_on_with_the_others(site: Storages) -> None:
    configure("TRANSFER_ATTEMPTS", 2)
    site.dataset("lab.in", "TAPE", lfns(0, 1, 2))
    site.path("TAPE", lfns(1)[0]).unlink()
    made = staged_task()
    carry()
    for _ in range(4):
        site.turn(4000)
    pilot = Pilot()
    carry()
    pilot.end(*pilot.fetch(1))
    carry()
    book_progress()
    assert (status(made), task(made).progress) == ("running", 33)
    carry(pilot.work)
    assert by_status(made) == {"finished": 2, "missing": 1}
    chosen = FILES.choose("lfn,error_text")
    (row,) = FILES.rows(list(File.objects.filter(task_id=made, status="missing").values(*FILES.needed(chosen))), chosen)
    assert row["error_text"] == "could not be staged from tape: no replica can be read"
    assert (status(made), dataset(made).files_missing, dataset(made).status) == ("finished", 1, "finished")
    said = "2 of 3 input files were processed; 1 file could not be staged from tape: lab.in.00001: "
    assert (task(made).error_dialog or "").startswith(said)
    assert (task(made).progress, of_datasets([dataset(made)], 1).label()) == (66, "2 of 3 files finished, 1 missing")
    assert_books_balance()


def test_a_file_on_tape_that_was_called_bad_is_staged_and_not_read_past_the_drives(site: Storages) -> None:
    site.dataset("lab.in", "TAPE", lfns(0))
    FileReplica.objects.create(scope="lab", lfn=lfns(0)[0], endpoint="TAPE", status="bad", url="file://localhost/t")
    made = staged_task()
    carry()
    assert by_status(made) == {"staging": 1}
    site.turn()
    site.turn()
    carry(Pilot().work)
    assert (status(made), TransferRule.objects.get().status) == ("done", "done")
    assert site.path("DISK", lfns(0)[0]).is_file() and not FileReplica.objects.filter(status="bad").exists()


def test_what_could_not_be_staged_for_a_fault_of_the_disk_is_staged_by_a_retry(site: Storages) -> None:
    configure("TRANSFER_ATTEMPTS", 1)
    site.dataset("lab.in", "TAPE", lfns(0, 1))
    made = staged_task(nChunksToWait=1)
    in_the_way = site.path("DISK", lfns(1)[0])
    (in_the_way / "something").mkdir(parents=True)
    carry()
    for _ in range(3):
        site.turn(4000)
    carry(Pilot().work)
    assert (status(made), by_status(made)) == ("finished", {"finished": 1, "missing": 1})
    (in_the_way / "something").rmdir()
    in_the_way.rmdir()
    command_queue.give_command(made, "retry", by="ada", reason="")
    carry()
    assert by_status(made) == {"finished": 1, "staging": 1}
    site.turn()
    carry(Pilot().work)
    assert (status(made), by_status(made)) == ("done", {"finished": 2})


def test_a_missing_file_is_tried_again_by_a_retry_and_read_by_an_incremental_execution(
    site: Storages, client: Client, make_user: Callable[..., User]
) -> None:
    configure("TRANSFER_ATTEMPTS", 1)
    site.dataset("lab.in", "TAPE", lfns(0, 1))
    there = site.path("TAPE", lfns(1)[0])
    content = there.read_bytes()
    there.unlink()
    made, goal = staged_task(nChunksToWait=1), staged_task("lab.u", nChunksToWait=1, goal=90)
    pilot = Pilot()
    carry()
    site.turn()
    carry(pilot.work)
    assert (status(made), status(goal), by_status(made)) == ("finished", "finished", {"finished": 1, "missing": 1})
    client.force_login(make_user("reader"))
    assert "1 of 2 files finished, 1 missing" in client.get(f"/tasks/{made}/").content.decode()
    # The copy was called bad: the mover looks for it again.
    command_queue.give_command(made, "retry", by="ada", reason="")
    carry()
    assert by_status(made) == {"finished": 1, "staging": 1}
    site.turn()
    carry(pilot.work)
    assert (status(made), by_status(made)) == ("finished", {"finished": 1, "missing": 1}), "it is still not there"
    assert_books_balance()
    there.write_bytes(content)
    command_queue.give_command(made, "retry", by="ada", reason="")
    command_queue.give_command(goal, "incexec", by="ada", reason="")
    carry()
    for _ in range(2):  # it is found on tape, and then waits for a drive
        site.turn()
    carry(pilot.work)
    assert [(status(one), by_status(one), task(one).progress) for one in (made, goal)] == [
        ("done", {"finished": 2}, 100)
    ] * 2
    assert_books_balance()


def test_a_task_none_of_whose_files_can_be_staged_breaks_and_says_so(site: Storages) -> None:
    configure("TRANSFER_ATTEMPTS", 1)
    site.dataset("lab.in", "TAPE", lfns(0))
    site.path("TAPE", lfns(0)[0]).unlink()
    made = staged_task()
    carry()
    site.turn()
    carry()
    assert status(made) == "broken"
    assert "1 file is lost" in (task(made).error_dialog or "")


def test_a_task_waits_while_no_disk_takes_files(site: Storages) -> None:
    site.dataset("lab.in", "TAPE", lfns(0, 1))
    StorageEndpoint.objects.filter(name="DISK").update(blacklisted_write=True)
    made = staged_task()
    carry()
    assert status(made) == "staging"
    blocked = why(task(made))["blocked_by"]
    assert (blocked["name"], blocked["code"]) == ("inputs", "copy_without_disk")
    assert blocked["sentence"].startswith("waits for 2 of 2 files from tape, none has arrived yet (as of ")
    assert blocked["sentence"].endswith("; no storage on disk takes files")
    StorageEndpoint.objects.filter(name="DISK").update(blacklisted_write=False)
    carry()
    site.turn()
    carry(Pilot().work)
    assert by_status(made) == {"finished": 2}


def test_where_there_is_no_disk_at_all_the_task_breaks_and_says_so(site: Storages) -> None:
    site.dataset("lab.in", "TAPE", lfns(0, 1))
    StorageEndpoint.objects.filter(name="DISK").delete()
    made = staged_task()
    carry()
    assert status(made) == "broken"
    assert "2 files of lab.in are on tape only (TAPE), and this site has no storage on disk" in (
        task(made).error_dialog or ""
    )


def test_late_files_wait_for_a_disk_when_all_disks_have_gone_and_come_when_one_is_back(site: Storages) -> None:
    site.dataset("lab.in", "DISK", lfns(0))
    site.dataset("lab.in", "TAPE", lfns(1))
    CatalogueDataset.objects.update(open=True)
    made = staged_task(runUntilClosed=True, nChunksToWait=1)
    carry()
    site.turn()
    pilot = Pilot()
    carry(pilot.work)
    assert by_status(made) == {"finished": 2}
    StorageEndpoint.objects.filter(name="DISK").update(blacklisted_write=True)
    site.dataset("lab.in", "TAPE", lfns(2))
    site.dataset("lab.in", "DISK", lfns(3))
    look_again()
    carry(pilot.work)
    assert by_status(made) == {"finished": 3, "staging": 1}, "what is on disk does not wait for the other"
    assert_books_balance()
    assert site.turn(4000).ended == 0 and site.turn(4000).ended == 0, "no attempt is used up"
    sentence = next(gate["sentence"] for gate in why(task(made))["gates"] if gate["name"] == "inputs")
    assert "waits for 1 of 2 files from tape" in sentence and "no storage on disk takes files" in sentence
    (link,) = [one for one in link_use.links(timezone.now()) if not one.destination]
    assert (link.queued, link.why) == (1, "no storage on disk takes files")
    StorageEndpoint.objects.filter(name="DISK").update(blacklisted_write=False)
    carry()
    assert TransferRule.objects.latest("id").destination == "DISK"
    site.turn()
    carry(pilot.work)
    assert by_status(made) == {"finished": 4}
    assert_books_balance()


def test_one_task_that_cannot_be_settled_holds_up_no_other(site: Storages, caplog: pytest.LogCaptureFixture) -> None:
    site.dataset("lab.in", "TAPE", lfns(0, 1))
    first, second = staged_task(), staged_task("lab.u")
    carry()
    site.turn()
    site.turn()
    with planted("jedi_tasks", "jeditaskid", first, "status"):
        data_carousel.run()
        assert (status(first), status(second)) == ("staging", "defined")
        assert (Trouble.objects.get().agent, Trouble.objects.get().subject) == ("data_carousel", first)
    caplog.clear()
    Trouble.objects.update(next_try=timezone.now())
    data_carousel.run()
    assert (status(first), Trouble.objects.exists()) == ("defined", False)


def test_late_files_on_tape_are_staged_as_well(site: Storages) -> None:
    site.dataset("lab.in", "TAPE", lfns(0, 1))
    made = staged_task(runUntilClosed=True)
    carry()
    assert by_status(made) == {"staging": 2}
    site.dataset("lab.in", "TAPE", lfns(2, 3))
    site.turn()
    carry()
    look_again()
    carry()
    assert len(files(made)) == 4
    site.turn()
    carry(Pilot().work)
    assert by_status(made) == {"finished": 4}


def test_a_task_that_is_staging_can_be_released(site: Storages) -> None:
    site.dataset("lab.in", "TAPE", lfns(0, 1))
    made = staged_task()
    carry()
    assert status(made) == "staging"
    command_queue.give_command(made, "release", by="ada", reason="")
    carry(Pilot().work)
    assert (status(made), by_status(made)) == ("done", {"finished": 2})
    assert_books_balance()


@pytest.mark.parametrize(
    ("removed", "ends", "says"), [((0,), "done", None), ((0, 1), "broken", "all of its input was removed by ada")]
)
def test_files_are_removed_while_their_task_stages(
    site: Storages, removed: tuple[int, ...], ends: str, says: str | None
) -> None:
    site.dataset("lab.in", "TAPE", lfns(0, 1))
    made = staged_task()
    carry()
    assert status(made) == "staging"
    command_queue.give_command(made, "remove_files", by="ada", parameters={"files": ",".join(lfns(*removed))})
    carry()
    site.turn()
    look_again()
    carry(Pilot().work)
    left = {"finished": 2 - len(removed)} if ends == "done" else {}
    assert (status(made), by_status(made)) == (ends, {"removed": len(removed), **left})
    assert task(made).error_dialog == says


def test_a_release_with_nothing_to_release_is_refused_at_the_door() -> None:
    add_dataset("lab.in", 1)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1))
    settle()
    with pytest.raises(
        command_queue.CommandRefusedError, match=f"no file of task {made} is being staged, and no workflow"
    ):
        command_queue.give_command(made, "release", by="ada")


def test_staging_ends_with_its_task(site: Storages) -> None:
    site.dataset("lab.in", "TAPE", lfns(0, 1))
    made = staged_task()
    carry()
    command_queue.give_command(made, "kill", by="ada", reason="")
    carry()
    assert status(made) == "aborted"
    rule = TransferRule.objects.get()
    assert (rule.status, rule.is_settled, rule.error) == ("cancelled", True, "its task has ended")
    assert site.turn().ended == 0


def test_too_much_that_comes_from_tape_throttles_a_users_task_until_it_has_arrived(
    site: Storages, settings: Any
) -> None:
    site.dataset("lab.in", "DISK", lfns(0, 1))
    site.dataset("lab.in", "TAPE", lfns(2, 3))
    made = staged_task(official=False)
    carry()
    assert (status(made), by_status(made)) == ("running", {"running": 2, "staging": 2})
    settings.JEDI_LIMITS = {"USER_PRESTAGE_LIMIT": 2e-6}
    user_caps.run()
    assert status(made) == "running", "2 kB are on their way, which is not more"
    settings.JEDI_LIMITS = {"USER_PRESTAGE_LIMIT": 1e-6}
    user_caps.run()
    assert status(made) == "throttled"
    assert "type=prestaging" in (task(made).error_dialog or "")
    site.turn()
    data_carousel.run()
    user_caps.run()
    assert status(made) == "running"
    carry(Pilot().work)
    assert by_status(made) == {"finished": 4}


def _dies_at(module: Any, name: str, work: Callable[[], Any]) -> None:
    """In a process of its own: work that is killed when it has just called a function, before that is written down."""
    old = getattr(module, name)

    def dies(*args: Any, **more: Any) -> None:
        old(*args, **more)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(module, name, dies)
    work()


def kill(module: Any, name: str, work: Callable[[], Any]) -> None:
    connection.close()
    other = multiprocessing.get_context("fork").Process(target=_dies_at, args=(module, name, work))
    other.start()
    other.join(60)
    assert other.exitcode == -signal.SIGKILL


def test_agents_that_are_killed_in_between_lose_nothing(site: Storages) -> None:
    site.dataset("lab.in", "TAPE", lfns(0, 1, 2))
    made = staged_task()
    refiner.run()
    kill(staging.requesting, "add_rules", feeder.run)
    assert (by_status(made), TransferRule.objects.exists()) == ({"staging": 3}, False), "stored, and not asked for"
    assert_books_balance()
    carry()
    assert (status(made), TransferRule.objects.get().files) == ("staging", 3)
    site.turn()
    kill(staging.settling, "settled", data_carousel.run)
    assert (status(made), by_status(made)) == ("staging", {"staging": 3}), "nothing of it was written down"
    assert_books_balance()
    carry(Pilot().work)
    assert (status(made), by_status(made)) == ("done", {"finished": 3})
