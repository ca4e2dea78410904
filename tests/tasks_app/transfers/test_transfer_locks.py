"""Locks of transfers, seen from a second connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from brokerage_app.grid import configured
from brokerage_app.models import StorageEndpoint
from jedisite.database.sql import hot_cursor
from tasks_app.domain.transfer_states import TransferKind, TransferStatus
from tasks_app.models import FileReplica, TransferRequest
from tasks_app.transfers import claiming, other_sources, requesting, settling, turn_books
from tasks_app.transfers.claiming import Held
from tasks_app.transfers.link_settings import mover_settings
from tasks_app.transfers.storages import local_storages
from tasks_app.transfers.turn_books import Step
from tests.locks import FOR_NO_KEY_UPDATE, skips, waits, waits_for
from tests.tasks_app.transfers.storage_scene import Storages, rule, states

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Storages]:
    configured.forget()
    found = Storages(tmp_path)
    found.add("A_DISK")
    found.add("B_DISK")
    found.dataset("lab.in", "A_DISK", ["f1", "f2"])
    yield found
    configured.forget()


def claims(site: Storages, without: list[int] | None = None) -> list[Held]:
    return claiming.claim(mover_settings(), local_storages(), site.now, 50, without or [])


def whole(work: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    def run() -> Any:
        with transaction.atomic(), hot_cursor() as cursor:
            return work(cursor, *arguments)

    return run


def request_row(lfn: str) -> tuple[str, str, int]:
    return "transfer_requests", "id", TransferRequest.objects.get(lfn=lfn).pk


def test_one_claims_at_a_time(site: Storages) -> None:
    site.rule("B_DISK", ["f1", "f2"])
    assert len(waits_for(claiming._LOCK, [], lambda: claims(site))) == 2


def test_a_request_that_another_has_is_passed_over(site: Storages) -> None:
    site.rule("B_DISK", ["f1", "f2"])
    first = request_row("f1")
    assert [held.lfn for held in skips(first, lambda: claims(site))] == ["f2"]
    assert [held.lfn for held in claims(site)] == ["f1"]


def test_a_request_that_is_begun_and_that_another_takes_is_passed_over(site: Storages) -> None:
    site.rule("B_DISK", ["f1", "f2"])
    claims(site)
    TransferRequest.objects.update(lease_until=None)
    assert [held.lfn for held in skips(request_row("f1"), lambda: claims(site))] == ["f2"]


def test_a_request_that_another_has_keeps_its_source(site: Storages) -> None:
    rule_id = site.rule("B_DISK", ["f1", "f2"])
    StorageEndpoint.objects.filter(name="A_DISK").update(blacklisted_read=True)
    site.add("C_DISK")
    for lfn in ("f1", "f2"):
        FileReplica.objects.create(scope="lab", lfn=lfn, endpoint="C_DISK", url="file://localhost/c")
    look = lambda: other_sources.read_elsewhere(mover_settings(), local_storages(), site.now)  # noqa: E731
    assert skips(request_row("f1"), look) == 1
    sources = TransferRequest.objects.filter(rule_id=rule_id).order_by("lfn").values_list("source", flat=True)
    assert list(sources) == ["A_DISK", "C_DISK"]


def test_a_rule_is_begun_when_who_cancels_it_has_done_so(site: Storages) -> None:
    rule_id = site.rule("B_DISK", ["f1"])
    cancelled = "UPDATE transfer_rules SET status = 'cancelled'"
    waits(("transfer_rules", "id", rule_id), lambda: claiming._begin_rules({rule_id}, site.now), then=cancelled)
    assert rule(rule_id).status == "cancelled"


def test_results_wait_for_who_cancels_and_rules_come_first(site: Storages) -> None:
    low, high = site.rule("B_DISK", ["f1"]), site.rule("B_DISK", ["f2"])
    held = claims(site)
    steps = [Step(one, TransferStatus.DONE, site.now, 1000, "file://localhost/x") for one in held]
    book = lambda: turn_books.book(steps, mover_settings(), local_storages(), site.now)  # noqa: E731
    assert waits(("transfer_rules", "id", low), book, free=("transfer_rules", "id", high)) == 2
    assert states(low) + states(high) == ["done", "done"]


def test_a_request_that_is_cancelled_in_this_moment_is_not_ended_with_that_of_another(site: Storages) -> None:
    site.rule("B_DISK", ["f1"])
    held = claims(site)
    other = site.rule("B_DISK", ["f1"])
    steps = [Step(one, TransferStatus.DONE, site.now, 1000, "file://localhost/x") for one in held]
    book = lambda: turn_books.book(steps, mover_settings(), local_storages(), site.now)  # noqa: E731
    gone = "UPDATE transfer_requests SET status = 'cancelled' WHERE rule_id = %s"
    row = "transfer_requests", "id", TransferRequest.objects.get(rule_id=other).pk
    assert waits(row, book, then=gone, values=[other], held=FOR_NO_KEY_UPDATE) == 1
    assert states(other) == ["cancelled"] and rule(other).files_done == 0


def test_rules_that_wait_for_what_has_arrived_are_locked_in_order_with_the_others(site: Storages) -> None:
    other = site.rule("B_DISK", ["f1"])
    high = site.rule("B_DISK", ["f1"])
    TransferRequest.objects.filter(rule_id=other).update(next_try=site.now + timedelta(hours=1))
    held = claims(site)
    assert [one.rule_id for one in held] == [high]
    steps = [Step(one, TransferStatus.DONE, site.now, 1000, "file://localhost/x") for one in held]
    book = lambda: turn_books.book(steps, mover_settings(), local_storages(), site.now)  # noqa: E731
    assert waits(("transfer_rules", "id", other), book, free=("transfer_rules", "id", high)) == 2
    assert states(other) + states(high) == ["done", "done"]


def test_a_request_that_has_become_somebody_elses_is_not_booked(site: Storages) -> None:
    rule_id = site.rule("B_DISK", ["f1"])
    (held,) = claims(site)
    steps = [Step(held, TransferStatus.DONE, site.now, 1000, "file://localhost/x")]
    book = lambda: turn_books.book(steps, mover_settings(), local_storages(), site.now)  # noqa: E731
    taken = "UPDATE transfer_requests SET lockedby = 'other-1'"
    assert waits(request_row("f1"), book, then=taken) == 0
    assert states(rule_id) == ["active"] and rule(rule_id).files_done == 0


def test_rules_are_cancelled_in_order(site: Storages) -> None:
    low, high = site.rule("B_DISK", ["f1"]), site.rule("B_DISK", ["f2"])
    cancel = whole(requesting.cancel, [high, low], "nobody wants it")
    assert waits(("transfer_rules", "id", low), cancel, free=("transfer_rules", "id", high)) == 2


def test_an_end_on_which_another_acts_is_passed_over(site: Storages) -> None:
    low, high = site.rule("B_DISK", ["f1"]), site.rule("B_DISK", ["f2"])
    site.turn()
    ended = whole(settling.ended, TransferKind.COPY, 10)
    assert [one.id for one in skips(("transfer_rules", "id", low), ended)] == [high]
