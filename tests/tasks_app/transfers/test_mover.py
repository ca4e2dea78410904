"""The mover on real files: copies, limits of links and tape, failures, a mover that is killed, and what others may see of it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from brokerage_app.grid import configured
from jedisite.database.sql import hot_cursor
from tasks_app.ddm.base import SITE
from tasks_app.ddm.local_files import file_url
from tasks_app.ddm.local_storage import catalogue
from tasks_app.domain.transfer_states import TransferKind
from tasks_app.models import CatalogueFile, FileReplica, TransferRequest
from tasks_app.transfers import file_copies, link_use, replicas, requesting, settling
from tasks_app.transfers.claiming import LEASE
from tests.lacking import lacking
from tests.tasks_app.transfers.storage_scene import Storages, configure, content_of, rule, states

pytestmark = pytest.mark.django_db
MB = 1_000_000


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Storages]:
    configured.forget()
    found = Storages(tmp_path)
    found.add("A_DISK")
    found.add("B_DISK")
    yield found
    configured.forget()


def test_files_are_copied_compared_and_known_at_both_places(site: Storages) -> None:
    lfns = [f"f{n:02d}" for n in range(12)]
    site.dataset("lab.in", "A_DISK", lfns)
    rule_id = site.rule("B_DISK", lfns, job_id=7)
    assert (rule(rule_id).status, rule(rule_id).files, rule(rule_id).bytes) == ("queued", 12, 12_000)
    assert site.turn().ended == 12
    done = rule(rule_id)
    assert (done.status, done.files_done, done.bytes_done, done.files_failed) == ("done", 12, 12_000, 0)
    assert done.started == done.ended == site.now
    for lfn in lfns:
        assert site.path("B_DISK", lfn).read_bytes() == content_of(lfn, 1000)
    assert set(FileReplica.objects.values_list("endpoint", "status")) == {("B_DISK", "available")}
    with hot_cursor() as cursor:
        found = replicas.places_of(cursor, [("lab", "f00")])[("lab", "f00")]
    assert [(p.endpoint, p.status) for p in found] == [("A_DISK", "available"), ("B_DISK", "available")]
    assert not site.parts()
    assert site.turn().ended == 0


def test_what_is_there_already_is_not_copied_again_and_two_rules_on_a_file_bring_it_once(site: Storages) -> None:
    site.dataset("lab.in", "A_DISK", ["f1"])
    first, second = site.rule("B_DISK", ["f1"]), site.rule("B_DISK", ["f1"])
    site.turn()
    assert states(first) + states(second) == ["done", "done"]
    assert site.path("B_DISK", "f1").stat().st_nlink == 1
    at_home = site.rule("A_DISK", ["f1"])
    assert site.turn().bytes == 0 and rule(at_home).status == "done"
    assert FileReplica.objects.count() == 1


def test_who_wants_a_file_that_another_has_brought_waits_for_no_link(site: Storages) -> None:
    configure("LINK_TRANSFERS", 1)
    configure("LINK_RATE", 0.001)
    site.dataset("lab.in", "A_DISK", ["f1", "f2", "f3"])
    first = site.rule("B_DISK", ["f1", "f2", "f3"])
    others = [
        site.rule("B_DISK", ["f1"]),
        site.rule("B_DISK", ["f1"], TransferKind.STAGE),
        site.rule("B_DISK", ["f1", "f2"]),
    ]
    unlike = site.rule("B_DISK", ["f1"])
    TransferRequest.objects.filter(rule_id=unlike).update(adler32="00000001")
    gathered = site.rule("B_DISK", ["f1"], TransferKind.GATHER)
    # One has waited for its next attempt, of which something is left.
    part = file_copies.part_of(
        file_copies.place_of(site.root / "B_DISK", "lab", "f1"), TransferRequest.objects.get(rule_id=others[0]).pk
    )
    part.parent.mkdir(parents=True, exist_ok=True)
    part.write_bytes(b"half")
    TransferRequest.objects.filter(rule_id=others[0]).update(
        has_part=True, attempt=1, started=site.now, error="it broke", next_try=site.now + timedelta(hours=1)
    )
    site.turn()
    assert site.turn(1).ended == 4
    assert states(first) == ["done", "active", "queued"], "the link goes on with the next file"
    assert [states(other) for other in others] == [["done"], ["done"], ["done", "queued"]]
    assert [(rule(other).status, rule(other).files_done, rule(other).bytes_done) for other in others] == [
        ("done", 1, 1000),
        ("done", 1, 1000),
        ("active", 1, 1000),
    ]
    assert {q.url for q in TransferRequest.objects.filter(lfn="f1", status="done")} == {
        file_url(site.path("B_DISK", "f1"))
    }
    assert states(unlike) == states(gathered) == ["queued"]
    assert part not in site.parts() and not TransferRequest.objects.filter(status="done", has_part=True).exists()
    (link,) = [use for use in link_use.links(site.now) if use.destination == "B_DISK"]
    assert link.done == 1 and link.mbps == pytest.approx(0.001, rel=0.6), "only what was copied counts"


def test_a_link_has_a_number_at_a_time_and_a_rate(site: Storages) -> None:
    configure("LINK_TRANSFERS", 2)
    configure("LINK_RATE", 1, "A_DISK:B_DISK")
    lfns = [f"f{n}" for n in range(4)]
    site.dataset("lab.in", "A_DISK", lfns, size=2 * MB)
    rule_id = site.rule("B_DISK", lfns)
    assert site.turn().bytes == 0, "the clock has not moved"
    assert states(rule_id) == ["active", "active", "queued", "queued"]
    assert site.turn(2).bytes == 2 * MB, "two seconds of one MB/s"
    assert [r.bytes_copied for r in TransferRequest.objects.order_by("id")[:2]] == [MB, MB]
    assert len(site.parts()) == 2
    site.turn(2)
    assert states(rule_id)[:2] == ["done", "done"]
    for _ in range(6):
        site.turn(2)
    assert rule(rule_id).status == "done" and not site.parts()
    seconds = (rule(rule_id).ended - site.now + timedelta(seconds=16)).total_seconds()
    assert 8 <= seconds <= 12, "eight MB at one MB/s, and no turn lost more than its period"


def test_a_turn_copies_no_more_than_its_volume(site: Storages) -> None:
    configure("TURN_VOLUME", 1)
    site.dataset("lab.in", "A_DISK", ["big"], size=int(2.5 * MB))
    rule_id = site.rule("B_DISK", ["big"])
    assert [(t.bytes, t.more) for t in (site.turn(), site.turn(), site.turn())] == [
        (MB, True),
        (MB, True),
        (MB // 2, False),
    ]
    assert rule(rule_id).status == "done"


def test_a_tape_has_drives_and_takes_its_time(site: Storages) -> None:
    site.add("A_TAPE", is_tape=True)
    configure("TAPE_DRIVES", 1)
    configure("TAPE_LATENCY", 60, "A_TAPE")
    site.dataset("lab.raw", "A_TAPE", ["t1", "t2"])
    rule_id = site.rule("A_DISK", ["t1", "t2"], TransferKind.STAGE)
    site.turn()
    assert states(rule_id) == ["active", "queued"]
    site.turn(59)
    assert states(rule_id) == ["active", "queued"], "the tape is not mounted yet"
    site.turn(1)
    assert states(rule_id) == ["done", "active"]
    with hot_cursor() as cursor:
        assert [f.lfn for f in settling.arrived(cursor, [rule_id])] == ["t1"], (
            "one may be used before the other is there"
        )
    site.turn(60)
    assert rule(rule_id).status == "done"


def test_a_failure_is_tried_again_with_growing_waits_and_then_the_rule_fails_with_its_cause(site: Storages) -> None:
    configure("TRANSFER_ATTEMPTS", 3)
    configure("TRANSFER_RETRY", 10)
    site.dataset("lab.in", "A_DISK", ["f1", "f2"])
    other = site.put("B_DISK", "f1", b"another file")
    rule_id = site.rule("B_DISK", ["f1"])
    waits = []
    for _ in range(2):
        site.turn()
        waits.append((TransferRequest.objects.get().next_try - site.now).total_seconds())
        assert site.turn(waits[-1] - 1).ended == 0, "not before its time"
        site.now += timedelta(seconds=1)
    assert waits == [10, 20]
    assert site.turn().ended == 1
    failed = rule(rule_id)
    assert (failed.status, failed.files_failed) == ("failed", 1)
    assert failed.error == (
        "f1 could not be copied to B_DISK: another file of that name lies at the destination already: it has 12 bytes, 1000 were "
        "expected"
    )
    other.unlink()
    assert site.turn(10_000).ended == 0 and rule(rule_id).status == "failed"


def test_a_corrupt_source_is_marked_and_another_copy_is_tried_first(site: Storages) -> None:
    site.add("C_DISK")
    site.dataset("lab.in", "A_DISK", ["f1"])
    site.put("C_DISK", "f1", content_of("f1", 1000))
    FileReplica.objects.create(scope="lab", lfn="f1", endpoint="C_DISK", url="file://localhost/c")
    site.put("A_DISK", "f1", b"x" * 1000)
    rule_id = site.rule("B_DISK", ["f1"])
    for _ in range(3):
        site.turn()
    assert rule(rule_id).status == "done" and site.path("B_DISK", "f1").read_bytes() == content_of("f1", 1000)
    bad = FileReplica.objects.get(endpoint="A_DISK")
    assert bad.status == "bad" and "adler32" in bad.reason
    assert CatalogueFile.objects.get().endpoint == "C_DISK", "a good copy has the first place"
    back = site.rule("A_DISK", ["f1"])
    site.turn()
    assert rule(back).status == "done" and site.path("A_DISK", "f1").read_bytes() == content_of("f1", 1000)
    assert not FileReplica.objects.filter(status="bad").exists(), "what was replaced is good again"
    assert not site.parts()


@pytest.mark.parametrize("left", ["nothing", "something else", "the file"])
def test_a_link_to_an_original_that_is_no_good_is_replaced_by_a_copy(site: Storages, left: str) -> None:
    """The storage has a link to what its owner registered; the owner has removed it, changed it, or put it back."""
    site.dataset("lab.in", "A_DISK", ["f1"])
    original = site.root / "original"
    site.path("A_DISK", "f1").unlink()
    site.path("A_DISK", "f1").symlink_to(original)
    CatalogueFile.objects.update(url=file_url(original))
    FileReplica.objects.create(scope="lab", lfn="f1", endpoint="A_DISK", status="bad", url=file_url(original))
    FileReplica.objects.create(scope="lab", lfn="f1", endpoint="B_DISK", url="file://localhost/b")
    site.put("B_DISK", "f1", content_of("f1", 1000))
    wanted = content_of("f1", 1000)
    if left != "nothing":
        original.write_bytes(wanted if left == "the file" else b"changed")
    back = site.rule("A_DISK", ["f1"])
    site.turn()
    assert (rule(back).status, rule(back).error) == ("done", "")
    assert site.path("A_DISK", "f1").read_bytes() == wanted
    assert site.path("A_DISK", "f1").is_symlink() == (left == "the file")
    assert left != "something else" or original.read_bytes() == b"changed", "what is the owner's stays"
    assert not FileReplica.objects.filter(status="bad").exists() and not site.parts()


def _large(site: Storages, lfns: list[str], part_of_free: float) -> None:
    """Files that would take so much of what is free, with nothing in them."""
    disk = os.statvfs(site.root)
    size = int(disk.f_bavail * disk.f_frsize * part_of_free)
    site.dataset("lab.in", "A_DISK", lfns)
    for lfn in lfns:
        os.truncate(site.path("A_DISK", lfn), size)
    CatalogueFile.objects.update(size=size)


def test_a_copy_for_which_there_is_no_room_waits_and_at_last_fails(site: Storages) -> None:
    site.now = timezone.now()
    configure("TRANSFER_ATTEMPTS", 2)
    configure("LINK_RATE", 0.0001)
    _large(site, ["f1"], 1.5)
    rule_id = site.rule("B_DISK", ["f1"])
    for _ in range(4):
        site.turn(61)
        request = TransferRequest.objects.get()
        assert (request.status, request.attempt) == ("queued", 0), "waiting is no attempt that failed"
        assert request.error.startswith("no room at B_DISK: ") and request.error.endswith(" wanted")
        assert not site.parts()
    site.turn(24 * 3600)
    assert (TransferRequest.objects.get().attempt, rule(rule_id).status) == (1, "active")
    site.turn(3600)
    assert rule(rule_id).status == "failed"
    assert rule(rule_id).error.startswith("f1 could not be copied to B_DISK: no room at B_DISK: ")


def test_what_a_copy_has_still_to_write_is_not_free_for_another(site: Storages) -> None:
    site.now = timezone.now()
    configure("LINK_RATE", 0.0001)
    _large(site, ["f1", "f2"], 0.6)
    first, second = site.rule("B_DISK", ["f1"]), site.rule("B_DISK", ["f2"])
    site.turn()
    for _ in range(2):
        site.turn(10)
    copying, waiting = TransferRequest.objects.order_by("id")
    assert copying.status == "active" and copying.bytes_copied > 0
    assert (waiting.status, waiting.attempt, waiting.error[:17]) == ("queued", 0, "no room at B_DISK")
    assert len(site.parts()) == 1
    with transaction.atomic(), hot_cursor() as cursor:
        requesting.cancel(cursor, [first], "nobody wants it")
    for _ in range(3):
        site.turn(61)
    assert states(second) == ["active"] and TransferRequest.objects.get(rule_id=second).bytes_copied > 0


@pytest.mark.parametrize("is_full", [False, True])
def test_something_in_the_way_of_a_copy_fails_that_copy_and_no_other(site: Storages, is_full: bool) -> None:
    """Also where what an earlier attempt has left is to be removed, as there is no room."""
    site.now = timezone.now()
    site.dataset("lab.in", "A_DISK", ["f1", "f2"])
    if is_full:
        _large(site, ["f3"], 1.5)
        CatalogueFile.objects.filter(lfn__in=["f1", "f2"]).update(size=1000)
    rule_id = site.rule("B_DISK", ["f3" if is_full else "f1", "f2"])
    bad, good = TransferRequest.objects.filter(rule=rule_id).order_by("-lfn" if is_full else "lfn")
    part = file_copies.part_of(file_copies.place_of(site.root / "B_DISK", "lab", bad.lfn), bad.id)
    part.mkdir(parents=True)
    site.turn()
    bad.refresh_from_db()
    good.refresh_from_db()
    assert (bad.status, bad.attempt, good.status) == ("queued", 1, "done")
    assert bad.error == "it cannot be written: Is a directory"
    part.rmdir()
    if not is_full:
        site.turn(3600)
        assert rule(rule_id).status == "done"


FILL = """
import sys
from pathlib import Path
import django
django.setup()
from tasks_app.transfers import file_copies
from tasks_app.transfers.file_copies import Content
source, target = map(Path, sys.argv[1:])
where = file_copies.place_of(target, "lab", "f1")
try:
    file_copies.copy_on(source, "lab", "f1", where, file_copies.part_of(where, 1), Content(2 << 20, ""), 2 << 20)
except file_copies.NoCopyError as exc:
    print(type(exc).__name__, exc, [path.name for path in target.rglob("*") if path.is_file()])
"""


def test_a_storage_that_fills_up_gets_back_what_the_copy_has_taken(site: Storages) -> None:
    site.put("A_DISK", "f1", bytes(2 << 20))
    small = f'mount -t tmpfs -o size=1m none "$2" && exec {sys.executable} -c "$0" "$1" "$2"'
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", small, FILL]
    done = subprocess.run(
        [*command, str(site.root / "A_DISK"), str(site.root / "B_DISK")],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3]), "DJANGO_SETTINGS_MODULE": "jedisite.settings"},
    )
    if done.stderr.startswith(("unshare:", "mount:")):
        lacking(f"this machine lets nobody mount a small storage: {done.stderr}")
    assert done.stdout.strip() == "NoRoomError the destination is full []", done.stderr


def test_without_any_good_copy_it_fails_and_says_so(site: Storages) -> None:
    configure("TRANSFER_ATTEMPTS", 2)
    site.dataset("lab.in", "A_DISK", ["f1"])
    site.path("A_DISK", "f1").unlink()
    rule_id = site.rule("B_DISK", ["f1"])
    site.turn()
    assert FileReplica.objects.get().status == "bad"
    assert "not in the storage" in TransferRequest.objects.get().error
    site.turn(3600)
    assert rule(rule_id).error == "f1 could not be copied to B_DISK: no replica can be read"


def test_links_that_lead_out_of_a_storage_are_not_followed(site: Storages, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(content_of("f1", 1000))
    site.dataset("lab.in", "A_DISK", ["f1"])
    where = site.path("B_DISK", "f1")
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "B_DISK" / "lab").symlink_to(outside)
    site.rule("B_DISK", ["f1"])
    site.turn()
    request = TransferRequest.objects.get()
    assert request.status == "queued" and "leads" in request.error
    assert not list(outside.iterdir()) and not where.exists(), "no folder is made there either"


@pytest.mark.parametrize("kind", ["hard link", "link", "pipe"])
def test_what_somebody_has_put_in_the_place_of_a_part_is_not_written_through(site: Storages, kind: str) -> None:
    site.dataset("lab.in", "A_DISK", ["f1"])
    rule_id = site.rule("B_DISK", ["f1"])
    theirs = site.root / "theirs"
    theirs.write_bytes(b"of somebody" * 200)
    request = TransferRequest.objects.get()
    part = file_copies.part_of(file_copies.place_of(site.root / "B_DISK", "lab", "f1"), request.id)
    part.parent.mkdir(parents=True)
    {"hard link": part.hardlink_to, "link": part.symlink_to, "pipe": lambda _: os.mkfifo(part)}[kind](theirs)
    site.turn()
    assert (rule(rule_id).status, rule(rule_id).error) == ("done", "")
    assert site.path("B_DISK", "f1").read_bytes() == content_of("f1", 1000)
    assert theirs.read_bytes() == b"of somebody" * 200 and not site.parts()


def test_a_part_is_a_plain_file_of_the_site_with_one_name(tmp_path: Path) -> None:
    part = tmp_path / "part"
    part.touch()
    mine = os.geteuid()
    assert file_copies.is_own(part.stat(), mine) and not file_copies.is_own(part.stat(), mine + 1)
    (tmp_path / "other").hardlink_to(part)
    assert not file_copies.is_own(part.stat(), mine) and not file_copies.is_own(tmp_path.stat(), mine)


@pytest.mark.parametrize("lfn", ["../f1", "a/b", ".."])
def test_names_that_lead_elsewhere_have_no_place(site: Storages, lfn: str) -> None:
    with pytest.raises(file_copies.NoCopyError):
        file_copies.place_of(site.root / "B_DISK", "lab", lfn)


def test_a_rule_that_is_cancelled_leaves_nothing_behind(site: Storages) -> None:
    configure("LINK_RATE", 1)
    site.dataset("lab.in", "A_DISK", ["f1", "f2"], size=3 * MB)
    rule_id = site.rule("B_DISK", ["f1", "f2"])
    site.turn()
    site.turn(1)
    assert site.parts()
    with transaction.atomic(), hot_cursor() as cursor:
        assert requesting.cancel(cursor, [rule_id], "the task was killed") == 1
    site.turn(1)
    assert (rule(rule_id).status, rule(rule_id).error) == ("cancelled", "the task was killed")
    assert states(rule_id) == ["cancelled", "cancelled"] and not site.parts()
    assert not site.path("B_DISK", "f1").exists()


def test_ends_are_acted_upon_once(site: Storages) -> None:
    site.dataset("lab.in", "A_DISK", ["f1"])
    rule_id, empty = site.rule("B_DISK", ["f1"]), site.rule("B_DISK", [])
    site.turn()
    with transaction.atomic(), hot_cursor() as cursor:
        assert [r.id for r in settling.ended(cursor, TransferKind.COPY, 10)] == [rule_id, empty]
        assert not settling.ended(cursor, TransferKind.STAGE, 10)
        settling.settled(cursor, [rule_id])
        assert [r.id for r in settling.ended(cursor, TransferKind.COPY, 10)] == [empty]


def _killed_while_it_copies(root: Path, now: Any) -> None:
    """In a process of its own: a turn of the mover that dies after its first file is at its place, before it is written down."""
    connection.close()
    old = file_copies.conclude

    def dies(*args: Any, **more: Any) -> None:
        old(*args, **more)
        os.kill(os.getpid(), signal.SIGKILL)

    from tasks_app.transfers import moving

    moving.file_copies.conclude = dies  # type: ignore[assignment]
    moving.move(now)


@pytest.mark.django_db(transaction=True)
def test_a_killed_mover_loses_nothing(site: Storages) -> None:
    lfns = [f"f{n}" for n in range(6)]
    site.dataset("lab.in", "A_DISK", lfns)
    rule_id = site.rule("B_DISK", lfns)
    connection.close()
    other = multiprocessing.get_context("fork").Process(target=_killed_while_it_copies, args=(site.root, site.now))
    other.start()
    other.join(60)
    assert other.exitcode == -signal.SIGKILL
    assert states(rule_id).count("active") == 4 and rule(rule_id).files_done == 0
    assert site.path("B_DISK", "f0").exists(), "it has its place and nobody knows"
    site.turn(1)
    assert rule(rule_id).status == "done" and rule(rule_id).files_done == 6
    assert all(site.path("B_DISK", lfn).read_bytes() == content_of(lfn, 1000) for lfn in lfns)
    assert not site.parts()


def test_what_a_mover_of_another_machine_holds_is_taken_over_when_its_lease_is_out(site: Storages) -> None:
    site.dataset("lab.in", "A_DISK", ["f1"])
    rule_id = site.rule("B_DISK", ["f1"])
    TransferRequest.objects.update(
        status="active",
        attempt=1,
        locked_by="other-1",
        lease_until=site.now + LEASE,
        started=site.now,
        moved_at=site.now,
    )
    assert site.turn(1).ended == 0
    assert site.turn(LEASE.total_seconds()).ended == 1
    assert rule(rule_id).status == "done"


@pytest.mark.django_db(transaction=True)
def test_replicas_are_looked_up_and_go_with_their_file(site: Storages) -> None:
    lfns = ["f1", "f2", "f3"]
    site.dataset("lab.in", "A_DISK", lfns)
    site.rule("B_DISK", lfns[:2])
    site.turn()
    FileReplica.objects.create(scope="lab", lfn="f3", endpoint="A_DISK", url="x", status="bad")
    places = catalogue.replicas(["lab.in"])["lab.in"]
    assert (places.files, places.size) == (3, 3000)
    assert [(h.endpoint, h.files, h.size, h.complete) for h in places.held] == [
        ("A_DISK", 2, 2000, False),
        ("B_DISK", 2, 2000, False),
    ]
    assert catalogue.remove("lab.in", ["f1"], by=SITE) == 1
    assert not site.path("A_DISK", "f1").exists() and not site.path("B_DISK", "f1").exists()
    assert set(FileReplica.objects.values_list("lfn", "endpoint")) == {("f2", "B_DISK"), ("f3", "A_DISK")}
    assert site.path("B_DISK", "f2").exists()
    catalogue.delete(["lab.in"], by=SITE)
    assert not FileReplica.objects.exists() and not [p for p in site.root.rglob("f*") if p.is_file()]
