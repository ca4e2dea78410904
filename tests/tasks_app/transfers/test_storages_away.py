"""Storages whose folder is away, as a disk that is not mounted, and files that were away for a moment."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone

from brokerage_app.grid import configured
from brokerage_app.models import StorageEndpoint
from jedisite.database.sql import hot_cursor
from tasks_app.domain.transfer_states import TransferKind
from tasks_app.models import FileReplica, TransferRequest
from tasks_app.outcomes.bad_inputs import Suspect, fault_at
from tasks_app.transfers import requesting
from tasks_app.transfers.moving import remove_parts
from tasks_app.transfers.storages import local_storages
from tests.tasks_app.transfers.storage_scene import Storages, configure, content_of, rule, states

pytestmark = pytest.mark.django_db


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Storages]:
    configured.forget()
    found = Storages(tmp_path, timezone.now())
    found.add("A_DISK")
    found.add("B_DISK")
    found.add("A_TAPE", is_tape=True)
    found.dataset("lab.in", "A_DISK", ["f1"])
    yield found
    configured.forget()


@pytest.mark.parametrize("away", ["A_DISK", "B_DISK"])
def test_a_copy_waits_for_a_storage_whose_folder_is_away_and_makes_none(site: Storages, away: str) -> None:
    configure("TRANSFER_ATTEMPTS", 2)
    rule_id = site.rule("B_DISK", ["f1"])
    mounted = (site.root / away).rename(site.root / "elsewhere")
    for _ in range(4):
        site.turn(61)
        request = TransferRequest.objects.get()
        assert (request.status, request.attempt) == ("queued", 0), "waiting is no attempt that failed"
        assert request.error == f"the folder of the storage {away} is away: it is not there"
    assert not (site.root / away).exists() and not FileReplica.objects.exists()
    mounted.rename(site.root / away)
    site.turn(61)
    assert rule(rule_id).status == "done" and site.path("B_DISK", "f1").read_bytes() == content_of("f1", 1000)


def test_a_storage_that_stays_away_for_a_day_fails_its_copies_with_that_sentence(site: Storages) -> None:
    configure("TRANSFER_ATTEMPTS", 1)
    rule_id = site.rule("B_DISK", ["f1"])
    (site.root / "B_DISK").rmdir()
    site.turn(25 * 3600)
    assert (
        rule(rule_id).error
        == "f1 could not be copied to B_DISK: the folder of the storage B_DISK is away: it is not there"
    )


def test_another_replica_is_read_while_a_storage_is_away(site: Storages) -> None:
    site.add("C_DISK")
    rule_id = site.rule("B_DISK", ["f1"])
    site.put("C_DISK", "f1", content_of("f1", 1000))
    FileReplica.objects.create(scope="lab", lfn="f1", endpoint="C_DISK", url="file://localhost/c")
    (site.root / "A_DISK").rename(site.root / "elsewhere")
    for _ in range(2):
        site.turn(61)
    assert rule(rule_id).status == "done" and not FileReplica.objects.filter(status="bad").exists()
    assert TransferRequest.objects.get().source == "C_DISK"


def test_what_a_copy_has_left_is_removed_when_its_storage_is_back(site: Storages) -> None:
    configure("LINK_RATE", 0.0001)
    rule_id = site.rule("B_DISK", ["f1"])
    site.turn()
    site.turn(3)
    assert len(site.parts()) == 1
    with transaction.atomic(), hot_cursor() as cursor:
        requesting.cancel(cursor, [rule_id], "nobody wants it")
    mounted = (site.root / "B_DISK").rename(site.root / "elsewhere")
    assert remove_parts(local_storages()) == 0
    mounted.rename(site.root / "B_DISK")
    assert remove_parts(local_storages()) == 1 and not site.parts()


def test_a_job_that_cannot_read_there_says_nothing_of_the_file(site: Storages) -> None:
    one = Suspect("lab", "f1", "", 1000, "0")
    (site.root / "A_DISK").rename(site.root / "elsewhere")
    assert fault_at(one, local_storages()["A_DISK"]) is None
    (site.root / "A_DISK").mkdir()
    assert fault_at(one, local_storages()["A_DISK"]) is None, "nothing is mounted there"
    (site.root / "A_DISK" / "other").touch()
    assert fault_at(one, local_storages()["A_DISK"]) == "it is not in the storage"


def test_the_folder_of_the_own_storage_is_made_once(tmp_path: Path, settings: Any) -> None:
    settings.JEDI_STORAGE = own = tmp_path / "own"
    said = StringIO()
    call_command("local_site", slots=1, stdout=StringIO(), stderr=said)
    assert own.is_dir() and said.getvalue() == ""
    own.rename(tmp_path / "elsewhere")
    call_command("local_site", slots=1, stdout=StringIO(), stderr=said)
    assert f"the folder of LOCAL_SE ({own}) is not there" in said.getvalue() and not own.exists()


def test_a_file_that_was_away_for_a_moment_is_a_replica_again(site: Storages) -> None:
    configure("TRANSFER_ATTEMPTS", 3)
    rule_id = site.rule("B_DISK", ["f1"])
    lies = site.path("A_DISK", "f1")
    away = lies.rename(site.root / "f1")
    site.turn()
    assert FileReplica.objects.get().status == "bad"
    away.rename(lies)
    site.turn(61)
    assert rule(rule_id).status == "done" and not FileReplica.objects.filter(status="bad").exists()


def test_what_is_there_again_with_another_content_stays_bad(site: Storages) -> None:
    configure("TRANSFER_ATTEMPTS", 2)
    rule_id = site.rule("B_DISK", ["f1"])
    site.put("A_DISK", "f1", b"x" * 1000)
    for _ in range(2):
        site.turn(3600)
    assert rule(rule_id).error == "f1 could not be copied to B_DISK: no replica can be read"
    assert FileReplica.objects.get().status == "bad"


def test_a_file_that_is_on_tape_again_waits_for_a_drive(site: Storages) -> None:
    configure("TAPE_DRIVES", 1)
    configure("TAPE_LATENCY", 60)
    site.dataset("lab.raw", "A_TAPE", ["t1", "t2"])
    FileReplica.objects.create(scope="lab", lfn="t2", endpoint="A_TAPE", status="bad", url="file://localhost/t")
    first, second = (site.rule("A_DISK", [lfn], TransferKind.STAGE) for lfn in ("t1", "t2"))
    for _ in range(2):
        site.turn()
    assert states(first) + states(second) == ["active", "queued"], "the drive is taken"
    request = TransferRequest.objects.get(rule_id=second)
    assert (request.source, request.attempt) == ("A_TAPE", 0)
    site.turn(60)
    site.turn(60)
    site.turn(60)
    assert states(first) + states(second) == ["done", "done"]


@pytest.mark.parametrize("kind", ["the folder", "a folder below it"])
def test_a_file_where_a_folder_is_to_be_says_so(site: Storages, kind: str) -> None:
    root = site.root / "B_DISK"
    if kind == "the folder":
        root.rmdir()
    (root if kind == "the folder" else root / "lab").write_text("")
    site.rule("B_DISK", ["f1"])
    site.turn(timedelta(minutes=1).total_seconds())
    said = TransferRequest.objects.get().error
    below = "it cannot be written: what is above f1 at the destination is no folder"
    assert said == ("the folder of the storage B_DISK is away: it is not there" if kind == "the folder" else below)
    assert StorageEndpoint.objects.get(name="B_DISK").path == str(root)
