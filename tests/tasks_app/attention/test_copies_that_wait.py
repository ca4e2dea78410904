"""Inputs that do not arrive are told of by their cause, with all tasks that wait for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from brokerage_app.grid import configured
from brokerage_app.models import StorageEndpoint
from tasks_app.attention import rounds
from tasks_app.domain.transfer_states import TransferKind
from tasks_app.models import AttentionItem, Task, TransferRequest, TransferRule
from tests.statements import sent
from tests.tasks_app.transfers.storage_scene import Storages, configure

pytestmark = pytest.mark.django_db


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Storages]:
    configured.forget()
    found = Storages(tmp_path, timezone.now())
    for name in ("A_DISK", "B_DISK", "C_DISK"):
        found.add(name)
    yield found
    configured.forget()


def told(after: timedelta) -> list[str]:
    rounds.round_of({"data": rounds.SLOW["data"]}, timezone.now() + after)
    return sorted(AttentionItem.objects.filter(kind="data", gone_at=None).values_list("sentence", flat=True))


def test_tasks_that_wait_for_one_storage_are_one_finding(site: Storages, make_task: Callable[..., Task]) -> None:
    first, second, third = tasks = [make_task(status="staging").id for _ in range(3)]
    site.dataset("lab.in", "A_DISK", ["f1", "f2"])
    site.dataset("lab.other", "C_DISK", ["f3"])
    for number in tasks:
        site.rule("B_DISK", ["f1", "f2", "f3"], TransferKind.STAGE, task_id=number)
    StorageEndpoint.objects.filter(name="B_DISK").update(blacklisted_write=True)
    assert not told(timedelta(minutes=30)), "it may pass"
    waits = (
        f"3 tasks ({first}, {second}, {third}) wait for 9 files, the oldest for 2 h: B_DISK is blacklisted for writing."
    )
    assert told(timedelta(hours=2)) == [waits]
    (finding,) = AttentionItem.objects.filter(kind="data", gone_at=None)
    assert (finding.path, finding.size, finding.unit) == ("/transfers/", 9, "files")
    assert told(timedelta(hours=30)) == [waits.replace("2 h", "1 d")], "and the tasks are not told of once more"
    StorageEndpoint.objects.filter(name="B_DISK").update(blacklisted_write=False)
    assert not told(timedelta(hours=2))


def test_a_busy_link_is_told_of_late_and_a_task_that_waits_for_no_copy_by_itself(
    site: Storages, make_task: Callable[..., Task]
) -> None:
    configure("LINK_TRANSFERS", 1)
    configure("LINK_RATE", 2)
    site.dataset("lab.in", "A_DISK", ["f1", "f2"])
    busy, stuck = make_task(status="staging").id, make_task(status="staging", name="lab.stuck").id
    site.rule("B_DISK", ["f1", "f2"], TransferKind.STAGE, task_id=busy)
    done = site.rule("B_DISK", ["f1"], TransferKind.STAGE, task_id=stuck)
    TransferRequest.objects.filter(rule_id=done).update(status="done", ended=timezone.now())
    TransferRule.objects.filter(pk=done).update(status="done", files_done=1, is_settled=True)
    assert not told(timedelta(hours=6))
    assert told(timedelta(hours=13)) == [
        f"1 task ({busy}) waits for 2 files, the oldest for 13 h: "
        "the link from A_DISK to B_DISK gives 2 MB/s in all, and has 2 files to copy.",
        f"Task {stuck} lab.stuck: its input has been on its way from tape for 13 h; 1 of 1 files have come from tape.",
    ]


def test_any_number_of_tasks_costs_the_same(site: Storages, make_task: Callable[..., Task]) -> None:
    site.dataset("lab.in", "A_DISK", ["f1"])

    def statements() -> int:
        site.rule("B_DISK", ["f1"], TransferKind.STAGE, task_id=make_task(status="staging").id)
        with sent() as said:
            told(timedelta())
        return len(said)

    statements()
    assert statements() == statements()
