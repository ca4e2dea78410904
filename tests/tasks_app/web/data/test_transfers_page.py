"""The page of transfers: links with what waits and why, and rules that are open or have failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from brokerage_app.grid import configured
from brokerage_app.models import LinkValue
from tasks_app.domain.transfer_states import TransferKind
from tasks_app.models import Task, TransferRequest
from tasks_app.transfers import link_use
from tests.tasks_app.transfers.storage_scene import Storages, configure

pytestmark = pytest.mark.django_db


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Storages]:
    configured.forget()
    found = Storages(tmp_path, timezone.now())
    for name in ("A_DISK", "B_DISK"):
        found.add(name)
    yield found
    configured.forget()


def text(reader: Any) -> str:
    answer = reader.get("/transfers/")
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_without_transfers_it_says_so(reader: Any, site: Storages) -> None:
    page = text(reader)
    assert "0 files are being copied, 0 are queued; 0 failed in the last hour." in page
    assert "No transfers in the last hour" in page and "No rules are open" in page


def test_links_and_rules_say_what_waits_and_why(reader: Any, site: Storages) -> None:
    configure("LINK_TRANSFERS", 1)
    configure("LINK_RATE", 0.0001)
    site.dataset("lab.in", "A_DISK", ["f1", "f2", "f3"])
    rule_id = site.rule("B_DISK", ["f1", "f2", "f3"], job_id=77)
    site.turn()
    page = text(reader)
    assert "1 file is being copied, 2 are queued; 0 failed in the last hour." in page
    assert page.replace("<wbr>", "").count("the link from A_DISK to B_DISK gives 0.0001 MB/s in all") == 2, (
        "at the link and at the rule"
    )
    assert f">{rule_id}</th>" in page and "copying of inputs" in page and "/jobs/77/" in page and "0 of 3" in page


def test_why_a_link_lets_files_wait_stays_the_same_from_turn_to_turn(site: Storages) -> None:
    configure("LINK_TRANSFERS", 2)
    configure("LINK_RATE", 3)
    site.dataset("lab.in", "A_DISK", [f"f{n}" for n in range(6)])
    site.rule("B_DISK", [f"f{n}" for n in range(6)])
    said = []
    for ended in range(5):
        # Between two turns none is being copied; in one, as many as may be.
        TransferRequest.objects.filter(lfn__in=[f"f{n}" for n in range(ended)]).update(status="done", ended=site.now)
        said += [use.why for use in link_use.links(site.now)]
        TransferRequest.objects.filter(lfn__in=[f"f{n}" for n in range(ended, ended + 2)]).update(status="active")
        said += [use.why for use in link_use.links(site.now)]
    busy = "the link from A_DISK to B_DISK gives 3 MB/s in all, and has {} files to copy"
    turn = "the mover continues in its next turn"
    assert said == [one for left in (6, 5, 4, 3) for one in [busy.format(left)] * 2] + [turn, ""]


def test_a_file_that_is_tried_again_says_so_until_it_is(site: Storages) -> None:
    site.dataset("lab.in", "A_DISK", ["f1"])
    site.put("B_DISK", "f1", b"another file")
    site.rule("B_DISK", ["f1"])
    site.turn()
    again = TransferRequest.objects.get().next_try
    assert again is not None
    early, late = (link_use.links(at)[0].why for at in (site.now, again + timedelta(minutes=5)))
    assert early == late and early.startswith("1 file will be tried again: another file of that name lies at the dest")


def test_what_is_closed_is_said_of_all_files_on_the_way_and_what_was_seen_with_its_time(
    reader: Any, site: Storages
) -> None:
    site.dataset("lab.in", "A_DISK", ["f1", "f2"])
    rule_id = site.rule("B_DISK", ["f1"])
    (site.root / "B_DISK").rename(site.root / "elsewhere")
    site.turn()
    site.rule("B_DISK", ["f2"])
    seen = "the folder of the storage B_DISK is away: it is not there, seen 3 min ago"
    (link,) = uses = link_use.links(site.now + timedelta(minutes=3))
    assert link.why == f"the mover continues in its next turn; 1 file will be tried again: {seen}"
    rules = link_use.rules_of_note(10)
    said = {one.rule.pk: one.why for one in link_use.noted(rules, uses, site.now + timedelta(minutes=3))}
    assert said[rule_id] == f"a file will be tried again: {seen}"
    LinkValue.objects.create(source="SITE_A_DISK", destination="SITE_B_DISK", key="AGIS_closeness", value=-1)
    page = text(reader).replace("<wbr>", "")
    assert page.count("the link from SITE_A_DISK to SITE_B_DISK is switched off") == 3, "at the link and at both rules"
    assert "will be tried again" not in page


def test_a_failure_says_its_cause(reader: Any, site: Storages) -> None:
    configure("TRANSFER_ATTEMPTS", 2)
    site.dataset("lab.in", "A_DISK", ["<b>f1"[3:]])
    site.put("B_DISK", "f1", b"another file")
    site.rule("B_DISK", ["f1"])
    site.turn()
    assert text(reader).replace("<wbr>", "").count("file will be tried again: another file of that name lies") == 2
    site.turn(timedelta(hours=2).total_seconds())
    page = text(reader)
    assert "1 failed in the last hour" in page and "could not be copied to" in page


def test_the_rate_of_a_link_is_seen_while_its_first_file_is_copied(site: Storages) -> None:
    configure("LINK_RATE", 0.0001)
    site.dataset("lab.in", "A_DISK", ["f1"])
    site.rule("B_DISK", ["f1"])
    site.turn()
    site.turn(5)
    (link,) = link_use.links(site.now)
    assert (link.active, link.done) == (1, 0) and link.mbps == pytest.approx(0.0001)


def test_the_rate_of_a_link_is_the_mean_since_its_first_copy_of_the_last_hour(reader: Any, site: Storages) -> None:
    site.dataset("lab.in", "A_DISK", ["f1", "f2"], size=1_000_000)
    site.rule("B_DISK", ["f1", "f2"])
    site.turn()
    assert TransferRequest.objects.filter(status="done").count() == 2
    begun = site.now

    def rate(after: timedelta) -> float | None:
        (link,) = link_use.links(begun + after)
        assert (link.done, link.moved) == (2, max(TransferRequest.objects.values_list("ended", flat=True)))
        return link.mbps

    assert rate(timedelta(seconds=10)) == pytest.approx(0.2, rel=0.1), "copied within one turn"
    assert rate(timedelta(minutes=10)) == pytest.approx(2 / 600, rel=0.1), "nothing has moved since"
    TransferRequest.objects.filter(lfn="f1").update(
        started=begun - timedelta(minutes=30), ended=begun + timedelta(minutes=30)
    )
    TransferRequest.objects.filter(lfn="f2").update(started=begun, ended=begun + timedelta(minutes=30))
    assert rate(timedelta(hours=1)) == pytest.approx((0.5 + 1) / 3600, rel=0.01), (
        "what was copied before is not counted"
    )
    page = text(reader)
    assert "MB/s is the mean of the last hour" in page and "Last copied" in page


def test_a_file_shows_how_far_it_is_how_fast_it_goes_and_when_it_will_be_there(reader: Any, site: Storages) -> None:
    configure("LINK_RATE", 0.001)
    site.dataset("lab.in", "A_DISK", ["f1"], size=100_000)
    rule_id = site.rule("B_DISK", ["f1"])
    site.turn()
    site.turn(25)
    (use,) = link_use.links(site.now)
    assert (use.limit, use.left) == (0.001, 75_000)
    (copy,) = link_use.copies([use], 10)
    assert (copy.lfn, copy.rule, copy.copied, copy.percent, copy.limit) == ("f1", rule_id, 25_000, 25, 0.001)
    assert copy.mbps == pytest.approx(0.001)
    assert copy.ends(site.now) == pytest.approx(site.now + timedelta(seconds=75), abs=timedelta(seconds=1))
    assert copy.ends(site.now + timedelta(hours=1)) is None, "nothing has come since"
    assert replace(copy, attempt=2).mbps is None, "it may have gone on with what the first has left"
    page = text(reader)
    assert "25.0 kB of 100.0 kB (25 %)</span>" in page
    assert "(limit 0.001)" in page and "Expected end (UTC)" in page


def test_the_tab_of_a_task_shows_what_is_staged_and_copied_for_it(
    reader: Any, site: Storages, make_task: Callable[..., Task]
) -> None:
    site.add("TAPE", is_tape=True)
    configure("TAPE_DRIVES", 1)
    configure("LINK_RATE", 0.0001)
    site.dataset("lab.in", "TAPE", ["f1", "f2", "f3"])
    task = make_task(status="staging")
    page = f"/tasks/{task.id}/inputs/"
    assert "Staging and transfers" not in reader.get(page).content.decode()
    site.rule("B_DISK", ["f1", "f2"], TransferKind.STAGE, task_id=task.id, dataset="lab.in")
    gathered = site.rule("A_DISK", ["f3"], TransferKind.GATHER, task_id=task.id, job_id=77)
    site.turn()
    text = " ".join(reader.get(page).content.decode().split())
    assert "Staging and transfers" in text
    assert "The task waits for 2 of 2 files from tape, none has arrived yet (as of " in text
    assert ">Staging from tape</th>" in text and ">Gathering of outputs</th>" in text
    assert f">{gathered}</th>" in text and "the tape TAPE reads 1 file at a time" in text.replace("<wbr>", "")
    assert ">0 of 2</a>" in reader.get("/data/", follow=True).content.decode()


def test_a_rule_whose_files_another_one_copies_says_so_and_each_file_counts_once(reader: Any, site: Storages) -> None:
    site.add("TAPE", is_tape=True)
    configure("TAPE_DRIVES", 2)
    configure("LINK_RATE", 0.0001)
    site.dataset("lab.in", "TAPE", ["f1", "f2"])
    first = site.rule("B_DISK", ["f1", "f2"], TransferKind.STAGE)
    site.rule("B_DISK", ["f1", "f2"], TransferKind.STAGE)
    site.turn()
    page = text(reader)
    assert page.count(f"its files are being copied for rule {first}") == 1
    for _ in range(8):
        site.turn(60)
    assert TransferRequest.objects.filter(status="done").count() == 4
    assert sum(link.done for link in link_use.links(site.now)) == 2


def test_the_api_lists_rules_and_transfers_by_their_filters(
    api: Callable[..., Any], site: Storages, make_task: Callable[..., Task]
) -> None:
    configure("TRANSFER_ATTEMPTS", 1)
    site.dataset("lab.in", "A_DISK", ["f1", "f2"])
    task = make_task()
    first = site.rule("B_DISK", ["f1"], task_id=task.id, job_id=77, user="ada", dataset="lab.in")
    site.turn()
    second = site.rule("A_DISK", ["f2"], TransferKind.GATHER)
    client = api("user")

    def ids(path: str, field: str = "id") -> list[int]:
        answer = client.get(f"/api/v2/{path}")
        assert answer.status_code == 200, answer.content
        return [row[field] for row in answer.json()["results"]]

    assert ids("transfer-rules/") == [second, first]
    for by in (
        f"task={task.id}",
        "job=77",
        "user=ada",
        "dataset=lab.in",
        "kind=copy",
        "status=done",
        "destination=B_DISK",
    ):
        assert ids(f"transfer-rules/?{by}") == [first], by
    assert ids("transfer-rules/?status=queued,active") == [second]
    assert ids("transfer-rules/?created_before=2026-01-01") == []
    for by in (f"rule={first}", f"task={task.id}", "job=77", "status=done", "lfn=f1", "destination=B_DISK"):
        assert ids(f"transfers/?{by}", "rule_id") == [first], by
    assert len(ids("transfers/?source=A_DISK&scope=lab")) == 2
    one = client.get(f"/api/v2/transfer-rules/{first}/").json()
    assert (one["files_done"], one["status"]) == (1, "done") and "report" not in one
    assert client.post("/api/v2/transfer-rules/", {}).status_code == 405
    assert client.get("/api/v2/transfers/?status=odd").status_code == 422
