"""Storages that are closed and links that are switched off: files wait, use up no attempt, and go on or come from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from brokerage_app.grid import configured
from brokerage_app.models import LinkValue, StorageEndpoint
from tasks_app.agents.watchdogs import site_statistics
from tasks_app.domain.transfer_states import TransferKind
from tasks_app.models import FileReplica, TransferRequest
from tasks_app.outcomes import away_folders
from tasks_app.transfers import other_sources
from tasks_app.transfers.link_settings import mover_settings
from tasks_app.transfers.storages import local_storages, shut
from tests.statements import sent
from tests.tasks_app.transfers.storage_scene import Storages, configure, content_of, rule, states

pytestmark = pytest.mark.django_db
HOUR = 3600
FILES = ["f1", "f2"]
Change = Callable[[], Any]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Storages]:
    configured.forget()
    found = Storages(tmp_path, timezone.now())
    found.add("A_DISK")
    found.add("B_DISK")
    found.dataset("lab.in", "A_DISK", FILES)
    yield found
    configured.forget()


def endpoint(name: str, **values: Any) -> Change:
    return lambda: StorageEndpoint.objects.filter(name=name).update(**values)


def switch_off() -> None:
    LinkValue.objects.create(source="SITE_A_DISK", destination="SITE_B_DISK", key="AGIS_closeness", value=-1)


def switch_on() -> None:
    LinkValue.objects.update(value=5)


def a_second_place(site: Storages, lfn: str = "f1") -> None:
    """The file lies at C_DISK, too."""
    site.add("C_DISK")
    site.put("C_DISK", lfn, content_of(lfn, 1000))
    FileReplica.objects.create(scope="lab", lfn=lfn, endpoint="C_DISK", url="file://localhost/c")


OFF, ON = {"write_wan": "OFF", "write_lan": "off"}, {"write_wan": "OFF", "write_lan": "ON"}
CLOSINGS: dict[str, tuple[Change, Change]] = {
    "writing": (endpoint("B_DISK", blacklisted_write=True), endpoint("B_DISK", blacklisted_write=False)),
    "reading": (endpoint("A_DISK", blacklisted_read=True), endpoint("A_DISK", blacklisted_read=False)),
    "states": (endpoint("B_DISK", states=OFF), endpoint("B_DISK", states=ON)),
    "for a while": (
        lambda: StorageEndpoint.objects.filter(name="B_DISK").update(closed_until=timezone.now(), closed_why="full"),
        lambda: site_statistics.run(now=timezone.now() + timedelta(seconds=1)),
    ),
    "link": (switch_off, switch_on),
}


@pytest.mark.parametrize("kind", CLOSINGS)
def test_files_wait_for_what_is_closed_for_any_time_and_go_on_by_themselves(site: Storages, kind: str) -> None:
    close, reopen = CLOSINGS[kind]
    configure("TRANSFER_ATTEMPTS", 1)
    close()
    rule_id = site.rule("B_DISK", FILES)
    for _ in range(4):
        assert site.turn(12 * HOUR).bytes == 0
        rows = TransferRequest.objects.values_list("status", "attempt", "error", "source")
        assert set(rows) == {("queued", 0, "", "A_DISK")}
    reopen()
    site.turn(61)
    assert rule(rule_id).status == "done" and rule(rule_id).files_done == 2
    assert site.path("B_DISK", "f2").read_bytes() == content_of("f2", 1000)


@pytest.mark.parametrize("kind", CLOSINGS)
def test_what_is_being_copied_stops_and_goes_on_with_what_it_has(site: Storages, kind: str) -> None:
    close, reopen = CLOSINGS[kind]
    configure("TRANSFER_ATTEMPTS", 1)
    configure("LINK_RATE", 0.0001)
    rule_id = site.rule("B_DISK", ["f1"])
    site.turn()
    site.turn(6)
    (part,) = site.parts()
    assert part.stat().st_size == 600
    close()
    for _ in range(3):
        site.turn(HOUR)
        assert states(rule_id) == ["queued"] and part.stat().st_size == 600
    reopen()
    site.turn(61)
    assert site.turn(2).bytes == 200, "of 400 that were left"
    site.turn(2)
    assert rule(rule_id).status == "done" and site.path("B_DISK", "f1").read_bytes() == content_of("f1", 1000)


@pytest.mark.parametrize("kind", ["reading", "link"])
def test_another_source_is_read_where_there_is_one(site: Storages, kind: str) -> None:
    rule_id = site.rule("B_DISK", FILES)
    CLOSINGS[kind][0]()
    site.turn()
    assert states(rule_id) == ["queued", "queued"]
    a_second_place(site)
    site.turn(61)
    assert states(rule_id) == ["done", "queued"], "f2 lies at A_DISK only"
    assert TransferRequest.objects.get(lfn="f1").source == "C_DISK"
    CLOSINGS[kind][1]()
    site.turn(61)
    assert rule(rule_id).status == "done"


@pytest.mark.parametrize("kind", ["reading", "link"])
def test_what_is_asked_for_meanwhile_takes_the_open_source_at_once(site: Storages, kind: str) -> None:
    a_second_place(site)
    CLOSINGS[kind][0]()
    rule_id = site.rule("B_DISK", ["f1"])
    site.turn()
    assert rule(rule_id).status == "done" and TransferRequest.objects.get().source == "C_DISK"


def test_outputs_wait_at_the_place_where_their_job_has_left_them(site: Storages) -> None:
    a_second_place(site)
    rule_id = site.rule("B_DISK", ["f1"], TransferKind.GATHER)
    TransferRequest.objects.update(source="A_DISK")
    switch_off()
    site.turn(61)
    assert states(rule_id) == ["queued"] and TransferRequest.objects.get().source == "A_DISK"
    switch_on()
    site.turn(61)
    assert rule(rule_id).status == "done"


@pytest.mark.parametrize("away", ["A_DISK", "B_DISK"])
def test_a_folder_that_the_site_has_found_to_be_away_is_waited_for_like_what_is_closed(
    site: Storages, away: str
) -> None:
    away_folders.look(site.now)
    configure("TRANSFER_ATTEMPTS", 1)
    rule_id = site.rule("B_DISK", ["f1"])
    mounted = (site.root / away).rename(site.root / "elsewhere")
    away_folders.look(site.now)
    closed = shut("A_DISK", "B_DISK", local_storages())
    assert closed is not None and closed.code == "copy_storage_away"
    assert closed.said.startswith(f"the folder of the storage {away} is away")
    for _ in range(3):
        site.turn(12 * HOUR)
    assert TransferRequest.objects.values_list("status", "attempt", "error").get() == ("queued", 0, "")
    mounted.rename(site.root / away)
    away_folders.look(site.now)
    site.turn(61)
    assert rule(rule_id).status == "done"


def test_a_link_is_switched_off_in_one_direction_and_only_by_its_closeness(site: Storages) -> None:
    switch_off()
    stores = local_storages()
    assert shut("A_DISK", "B_DISK", stores) and not shut("B_DISK", "A_DISK", stores)
    LinkValue.objects.update(at=site.now - timedelta(days=5))
    assert shut("A_DISK", "B_DISK", local_storages()), "it stays off until somebody gives it another closeness"
    LinkValue.objects.update(key="dashb_mbps_1h")
    assert not shut("A_DISK", "B_DISK", local_storages())


def test_what_lies_at_a_destination_that_takes_no_files_is_found_there(site: Storages) -> None:
    CLOSINGS["writing"][0]()
    site.put("B_DISK", "f1", content_of("f1", 1000))
    FileReplica.objects.create(scope="lab", lfn="f1", endpoint="B_DISK", url="file://localhost/b")
    rule_id = site.rule("B_DISK", ["f1"])
    site.turn()
    assert rule(rule_id).status == "done"


def test_waiting_costs_no_statement_for_each_file_and_nothing_where_all_is_open(site: Storages) -> None:
    site.rule("B_DISK", FILES)
    with sent() as said:
        assert other_sources.read_elsewhere(mover_settings(), local_storages(), site.now) == 0
    assert len([one for one in said if "transfer_requests" in str(one)]) == 0
    CLOSINGS["reading"][0]()

    def statements() -> int:
        with sent() as said:
            site.turn(61)
        return len(said)

    few = statements()
    site.dataset("lab.more", "A_DISK", [f"g{n}" for n in range(20)])
    site.rule("B_DISK", [f"g{n}" for n in range(20)])
    assert statements() == few
