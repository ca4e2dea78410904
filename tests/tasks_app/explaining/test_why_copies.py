"""Why of a job or a task that waits for copies of its input gives the reason that the mover has."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from brokerage_app.grid import configured
from brokerage_app.models import LinkValue, StorageEndpoint
from jedisite import refusals
from jedisite.models import Agent
from tasks_app.domain.transfer_states import TransferKind
from tasks_app.models import Dataset, Job, Task, TransferRequest
from tasks_app.transfers.rules.copy_waits import Copies, CopyWaits, Load, joined, reason_of, why_busy
from tests.statements import sent
from tests.tasks_app.transfers.storage_scene import Storages, configure

pytestmark = pytest.mark.django_db
FILES = ("f1", "f2", "f3")
LINK = "the link from A_DISK to B_DISK"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Storages]:
    configured.forget()
    found = Storages(tmp_path, timezone.now())
    for name in ("A_DISK", "B_DISK"):
        found.add(name)
    found.add("TAPE", is_tape=True)
    yield found
    configured.forget()


@pytest.fixture
def job(make_job: Callable[..., Job], make_task: Callable[..., Task]) -> Job:
    return make_job(status="assigned", task_id=make_task(status="running").id)


def no_seconds(text: str) -> str:
    """Without how long ago something was, which differs from one answer to the next."""
    return re.sub(r"\d+ s ago|\bnow\b", "s ago", text)


@pytest.fixture
def why(
    api: Callable[..., Any], client: Client, make_user: Callable[..., User], job: Job
) -> Callable[[], tuple[str, str]]:
    """Code and sentence of what the job waits for. The page and the task say the same."""
    client.force_login(make_user("reader"))

    def ask() -> tuple[str, str]:
        gate = api().get(f"/api/v2/jobs/{job.id}/why/").json()["blocked_by"]
        of_task = api().get(f"/api/v2/tasks/{job.task_id}/why/").json()["gates"]
        (same,) = (one for one in of_task if one["name"] == "activated")
        assert same["code"] == gate["code"]
        said = gate["sentence"].replace(" of its input", "")
        whole = f"1 job waits for its input to be brought to the site; none is activated; {said}"
        assert no_seconds(same["sentence"]) == no_seconds(whole)
        page = no_seconds(" ".join(client.get(f"/jobs/{job.id}/why/").content.decode().split()))
        assert no_seconds(gate["sentence"][1:]) in page and ('<a href="/transfers/">Transfers</a>' in page) is (
            "page Transfers" in gate["advice"]
        )
        return gate["code"], gate["sentence"]

    return ask


def ask_for(site: Storages, job: Job, at: str = "A_DISK", to: str = "B_DISK", files: tuple[str, ...] = FILES) -> int:
    site.dataset("lab.in", at, files)
    return site.rule(to, files, job_id=job.id, task_id=job.task_id)


def test_a_link_that_is_busy(site: Storages, job: Job, why: Callable[[], tuple[str, str]]) -> None:
    configure("LINK_TRANSFERS", 1)
    configure("LINK_RATE", 0.0001)
    ask_for(site, job)
    busy = f"{LINK} gives 0.0001 MB/s in all, and has 3 files to copy"
    assert why() == ("copy_link_slow", f"3 files of its input have not arrived at B_DISK: {busy}")
    site.turn()
    site.turn(2)
    copying = "200 B of 1.0 kB copied so far, over a link that gives 0.0001 MB/s in all"
    assert why()[1].endswith(f"{busy} (2 files); {copying} (1 file)")
    site.turn(10)
    left = f"2 of 3 files of its input have not arrived at B_DISK: {LINK} gives 0.0001 MB/s in all, and has 2 files to copy"
    assert why()[1].startswith(left)


def test_files_that_come_by_themselves(site: Storages, job: Job, why: Callable[[], tuple[str, str]]) -> None:
    configure("LINK_RATE", 0.0001)
    ask_for(site, job, files=("f1",))
    ours = "1 file of its input has not arrived at B_DISK: "
    assert why() == ("job_waits_for_input", f"{ours}the mover continues in its next turn")
    site.turn()
    assert why()[1].startswith(f"{ours}0 B of 1.0 kB copied so far")
    TransferRequest.objects.update(rule_id=site.rule("B_DISK", []))
    site.rule("B_DISK", ["f1"], job_id=job.id, task_id=job.task_id)
    assert why()[0] == "job_waits_for_input"
    assert "(1 file)" not in why()[1], "one reason is not counted"


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("B_DISK", {"blacklisted_write": True}, "B_DISK is blacklisted for writing"),
        ("A_DISK", {"blacklisted_read": True}, "A_DISK is blacklisted for reading"),
        (
            "B_DISK",
            {"states": {"write_wan": "OFF", "write_lan": "OFF"}},
            "writing is switched off at B_DISK, over WAN and LAN",
        ),
        (
            "B_DISK",
            {"closed_until": datetime(2026, 5, 4, 12, 30, tzinfo=UTC)},
            "B_DISK is closed for writing until 12:30 UTC, since jobs could not store their outputs there",
        ),
    ],
)
def test_a_storage_that_is_closed_is_said_as_long_as_it_is_and_no_attempt_is_used_up(
    site: Storages,
    job: Job,
    why: Callable[[], tuple[str, str]],
    name: str,
    change: dict[str, Any],
    said: str,
) -> None:
    ask_for(site, job)
    StorageEndpoint.objects.filter(name=name).update(**change)
    code = "copy_storage_closed" if "closed_until" in change else "copy_storage_off"
    for _ in range(6):
        assert why() == (code, f"3 files of its input have not arrived at B_DISK: {said}")
        site.turn(3600)


def test_a_link_that_is_switched_off(site: Storages, job: Job, why: Callable[[], tuple[str, str]]) -> None:
    ask_for(site, job)
    link = LinkValue.objects.create(source="SITE_A_DISK", destination="SITE_B_DISK", key="AGIS_closeness", value=-1)
    site.turn()
    off = "the link from SITE_A_DISK to SITE_B_DISK is switched off"
    assert why() == ("copy_link_off", f"3 files of its input have not arrived at B_DISK: {off}")
    assert "in the admin under Link values" in refusals.get("copy_link_off").advice
    assert str(LinkValue._meta.verbose_name_plural) == "link values"
    link.delete()
    site.turn(61)
    assert not TransferRequest.objects.exclude(status="done").exists()


def test_a_storage_that_is_none_of_this_machine_uses_up_attempts(
    site: Storages, job: Job, why: Callable[[], tuple[str, str]]
) -> None:
    ask_for(site, job)
    StorageEndpoint.objects.filter(name="B_DISK").update(path="")
    gone = "3 files of its input have not arrived at B_DISK: B_DISK is no storage of this machine"
    assert why() == ("copy_storage_gone", gone)
    site.turn()
    assert why()[0] == "copy_storage_gone"
    assert why()[1].startswith(f"{gone}; the next attempt, number 2 of 5, is at ")


def test_a_storage_that_is_not_mounted_and_one_that_is_full(
    site: Storages, job: Job, why: Callable[[], tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    rule_id = ask_for(site, job)
    (site.root / "B_DISK").rename(site.root / "away")
    site.turn()
    code, sentence = why()
    away = "at B_DISK: the folder of the storage B_DISK is away: it is not there, seen s ago; the next attempt is at "
    assert code == "copy_storage_away" and away in no_seconds(sentence)
    TransferRequest.objects.filter(rule_id=rule_id, lfn="f1").update(
        error="no room at B_DISK: 0 B free, 1.0 kB wanted", moved_at=timezone.now() - timedelta(minutes=3)
    )
    TransferRequest.objects.filter(rule_id=rule_id, lfn="f2").update(error="the destination is full", next_try=None)
    code, sentence = why()
    assert code == "copy_storage_away"
    assert "no room at B_DISK: 0 B free, 1.0 kB wanted, seen 3 min ago; the next attempt is at " in sentence
    assert sentence.endswith("(2 files)")


def test_a_copy_that_fails_says_how_often_it_is_tried(
    site: Storages, job: Job, why: Callable[[], tuple[str, str]]
) -> None:
    configure("TRANSFER_ATTEMPTS", 3)
    ask_for(site, job, files=("f1",))
    site.put("B_DISK", "f1", b"another file")
    site.turn()
    code, sentence = why()
    assert code == "copy_fails"
    assert (
        "the copy from A_DISK to B_DISK failed: another file of that name lies at the destination already" in sentence
    )
    assert "; the next attempt, number 2 of 3, is at " in sentence
    TransferRequest.objects.update(next_try=timezone.now() - timedelta(hours=1))
    assert why()[1].endswith("; the next attempt, number 2 of 3, is due now")


def test_outputs_that_are_not_gathered_have_the_same_reasons(
    api: Callable[..., Any], site: Storages, make_job: Callable[..., Job], make_task: Callable[..., Task]
) -> None:
    job = make_job(status="transferring", task_id=make_task(status="running").id)
    site.dataset("lab.out", "A_DISK", ("f1", "f2"))
    site.rule("B_DISK", ("f1", "f2"), TransferKind.GATHER, job_id=job.id, task_id=job.task_id)

    def blocked(path: str, gate: str) -> tuple[str, str]:
        (found,) = (one for one in api().get(f"/api/v2/{path}/why/").json()["gates"] if one["name"] == gate)
        return found["code"], found["sentence"]

    (site.root / "B_DISK").rename(site.root / "away")
    site.turn()
    code, sentence = blocked(f"jobs/{job.id}", "outputs")
    assert code == "copy_storage_away"
    assert sentence.startswith(
        "2 files of its outputs have not arrived at B_DISK: the folder of the storage B_DISK is away: it is not there"
    )
    code, sentence = blocked(f"tasks/{job.task_id}", "running")
    assert code == "copy_storage_away"
    assert (
        "its payloads have ended" in sentence
        and "at B_DISK: the folder of the storage B_DISK is away: it is not there" in sentence
    )


def test_what_holds_a_part_of_the_jobs_up_is_said_while_others_run(
    api: Callable[..., Any],
    client: Client,
    make_user: Callable[..., User],
    site: Storages,
    job: Job,
    make_job: Callable[..., Job],
    make_dataset: Callable[..., Dataset],
) -> None:
    make_dataset(Task.objects.get(), type="input", files=3, files_to_be_used=3, files_used=3)
    make_job(status="running", task_id=job.task_id)
    ask_for(site, job)
    ask_for(site, make_job(status="assigned", task_id=job.task_id), files=("g1",))
    StorageEndpoint.objects.filter(name="B_DISK").update(blacklisted_write=True)

    def gate(name: str) -> dict[str, Any]:
        answer = api().get(f"/api/v2/tasks/{job.task_id}/why/").json()
        assert answer["blocked_by"] is None
        (found,) = (one for one in answer["gates"] if one["name"] == name)
        return found

    said = (
        "1 job is activated or beyond; 2 jobs wait for their input to be brought to the site; 4 files have not arrived at "
        "B_DISK: B_DISK is blacklisted for writing"
    )
    held = gate("activated")
    assert (held["answer"], held["code"], held["sentence"]) == ("yes", "copy_storage_off", said)
    assert "in the admin under Storage endpoints" in held["advice"] and held["who_can_fix"] == "site"
    client.force_login(make_user("reader"))
    page = " ".join(client.get(f"/tasks/{job.task_id}/why/").content.decode().split())
    assert '<div class="statusline warn">' in page and "All gates are passed, but not by all of its jobs." in page
    assert page.count(said) == 2 and held["advice"] in page, "at the head and at its gate"
    StorageEndpoint.objects.filter(name="B_DISK").update(blacklisted_write=False)
    site.turn()
    Job.objects.filter(status="assigned").update(status="transferring")
    assert gate("activated")["sentence"] == "3 jobs are activated or beyond"
    site.dataset("lab.out", "A_DISK", ("h1",))
    site.rule("B_DISK", ("h1",), TransferKind.GATHER, job_id=job.id, task_id=job.task_id)
    assert gate("running")["sentence"] == "1 job runs"
    (site.root / "B_DISK").rename(site.root / "away")
    site.turn()
    held = gate("running")
    assert (held["answer"], held["code"]) == ("yes", "copy_storage_away")
    assert held["sentence"].startswith("1 job runs; 2 jobs wait for their outputs to be brought to B_DISK")
    assert "; 1 file has not arrived at B_DISK: the folder of the storage B_DISK is away" in held["sentence"]


def test_a_file_that_nobody_has(site: Storages, job: Job, why: Callable[[], tuple[str, str]]) -> None:
    ask_for(site, job, files=("f1",))
    site.path("A_DISK", "f1").unlink()
    site.turn()
    code, sentence = why()
    assert code == "copy_without_source"
    assert (
        "no replica of f1 can be read (the one at A_DISK is bad); the next attempt, number 2 of 5, is at " in sentence
    )


def test_a_tape_that_is_busy_and_a_disk_that_is_missing(
    api: Callable[..., Any], site: Storages, make_task: Callable[..., Task]
) -> None:
    configure("TAPE_DRIVES", 1)
    task = make_task(status="staging", split_rule="IS=1")
    site.dataset("lab.in", "TAPE", FILES)
    site.rule("B_DISK", FILES, TransferKind.STAGE, task_id=task.id, dataset="lab.in")

    def blocked() -> dict[str, Any]:
        found: dict[str, Any] = api().get(f"/api/v2/tasks/{task.id}/why/").json()["blocked_by"]
        return found

    assert blocked()["code"] == "copy_tape_busy" and "page Transfers" in blocked()["advice"]
    assert blocked()["sentence"].endswith(" UTC); the tape TAPE reads 1 file at a time, and has 3 to read")
    TransferRequest.objects.update(destination="")
    assert blocked()["code"] == "copy_without_disk"
    assert blocked()["sentence"].endswith("; no storage on disk takes files")


def test_a_mover_that_is_paused_is_the_reason(site: Storages, job: Job, why: Callable[[], tuple[str, str]]) -> None:
    ask_for(site, job)
    Agent.objects.update_or_create(name="mover", defaults={"period_s": 2, "paused": True})
    code, sentence = why()
    assert code == "agent_paused" and "have not arrived at B_DISK: the agent mover is paused" in sentence
    Agent.objects.filter(name="mover").update(paused=False, last_ended_at=timezone.now() - timedelta(hours=1))
    code, sentence = why()
    assert code == "agent_late" and "the agent mover ended its last pass s ago" in no_seconds(sentence)


def test_the_reasons_cost_the_same_for_any_number_of_files(
    api: Callable[..., Any], site: Storages, job: Job, make_job: Callable[..., Job]
) -> None:
    client = api()
    ask_for(site, job)

    def statements() -> int:
        with sent() as said:
            assert client.get(f"/api/v2/tasks/{job.task_id}/why/").status_code == 200
        return len(said)

    statements()
    few = statements()
    for n in range(10):
        other = make_job(status="assigned", task_id=job.task_id)
        ask_for(site, other, files=tuple(f"g{n}{m}" for m in range(5)))
    assert statements() == few


def test_the_narrower_of_link_and_tape_is_named() -> None:
    def code(**more: Any) -> str:
        return why_busy("TAPE", "DISK", Load(**more))[0]

    assert code(at_once=4, wanted=4, drives=4, reads=4) == ""
    assert code(at_once=4, wanted=9, drives=2, reads=9) == "copy_tape_busy"
    assert code(at_once=1, wanted=9, drives=2, reads=9) == "copy_link_busy"
    assert code(at_once=4, wanted=2, drives=2, reads=9) == "copy_tape_busy", "other links keep its drives"
    assert code(at_once=4, wanted=9, left=9, turn=100) == "", "all of them in one turn"
    assert code(at_once=4, wanted=9, left=900, turn=100) == "copy_mover_busy"
    assert code(at_once=4, wanted=9, left=900, turn=100, mbps=5) == "copy_link_slow"
    tape = {"at_once": 4, "wanted": 9, "drives": 2, "reads": 9, "latency": 10.0, "left": 900_000_000}
    assert code(**tape, mbps=100) == "copy_tape_busy", "the tape takes 50 s, the link 9 s"
    assert code(**tape, mbps=10) == "copy_link_slow", "90 s"


def test_several_reasons_are_said_with_what_has_to_be_mended_first() -> None:
    now = timezone.now()
    links = [Copies("A", f"B{n}", "queued", 2, example=("lab", "f")) for n in range(6)]
    off = [("copy_storage_off", f"B{n} is off") for n in (4, 5)]
    loads = [Load(wanted=2, mbps=3), Load(wanted=2, mbps=3), Load(4), Load(4), *(Load(closed=one) for one in off)]
    reasons = joined(reason_of(one, load, now, 5) for one, load in zip(links, loads, strict=True))
    waits = CopyWaits(20, 12, tuple(one.destination for one in links), reasons)
    assert waits.code == "copy_storage_off"
    assert waits.left_in_words() == "12 of 20 files have not arrived at 6 storages"
    assert waits.why == (
        "B4 is off (2 files); B5 is off (2 files); the link from A to B0 gives 3 MB/s in all, and has 2 files to copy (2 files); "
        "other reasons for 6 files"
    )
    assert reasons[-1].files == 4, "the same reason is said once"
