"""What a pilot behind walls leaves for the storage: only plain files, only in their places, nothing ever overwritten."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tasks_app.worker_node.pilot.storage import place
from tasks_app.worker_node.submitters import pilot_outbox
from tasks_app.worker_node.submitters.pilot_outbox import take
from tests.lacking import lacking


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    (tmp_path / "storage").mkdir()
    return tmp_path / "storage"


@pytest.fixture
def box(tmp_path: Path) -> Path:
    (tmp_path / "outbox").mkdir()
    return tmp_path / "outbox"


def left(box: Path, scope: str, name: str, text: str = "mine") -> Path:
    """A file that a pilot has left where its storage wants it."""
    path = place(box, scope, name).path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_files_come_to_their_places_once_and_belong_to_the_site(storage: Path, box: Path) -> None:
    gone = [left(box, "user.ada", "a.txt"), left(box, "data", "b.root", "b")]
    gone[0].chmod(0o4777)
    assert take(box, storage) == 2
    assert not any(path.exists() for path in gone)
    kept = place(storage, "user.ada", "a.txt").path
    assert (kept.read_text(), kept.stat().st_mode & 0o7777) == ("mine", 0o644)
    assert place(storage, "data", "b.root").path.read_text() == "b"
    assert take(box, storage) == 0
    assert take(box / "none", storage) == 0


def test_what_is_there_is_never_overwritten(storage: Path, box: Path) -> None:
    hers = place(storage, "user.eva", "x").path
    hers.parent.mkdir(parents=True)
    hers.write_text("hers")
    mine = left(box, "user.eva", "x")
    assert take(box, storage) == 0
    assert hers.read_text() == "hers" and not mine.exists()


def test_while_the_folder_of_the_storage_is_away_files_stay_where_they_are(storage: Path, box: Path) -> None:
    mine = left(box, "user.ada", "a.txt")
    storage.rmdir()
    assert take(box, storage) == 0
    assert mine.exists() and not storage.exists()
    storage.mkdir()
    assert take(box, storage) == 1


def test_links_and_wrong_places_bring_nothing(storage: Path, box: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret_key"
    secret.write_text("the key")
    link = place(box, "user.ada", "key").path
    link.parent.mkdir(parents=True)
    link.symlink_to(secret)
    other = place(box, "user.ada", "folder").path
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "folder").write_text("of the site")
    other.parent.parent.mkdir(parents=True, exist_ok=True)
    other.parent.symlink_to(elsewhere)
    pipe = place(box, "user.ada", "pipe").path
    pipe.parent.mkdir(parents=True)
    os.mkfifo(pipe)
    (box / "loose").write_text("")
    wrong = left(box, "user.ada", "right").rename(link.with_name("wrong"))
    assert take(box, storage) == 0
    assert [path for path in storage.rglob("*") if not path.is_dir()] == []
    assert (elsewhere / "folder").read_text() == "of the site" and secret.read_text() == "the key"
    assert not wrong.exists() and not (box / "loose").exists()


def test_a_storage_with_a_link_among_its_folders_is_not_left(storage: Path, box: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (storage / "user").symlink_to(outside)
    left(box, "user.ada", "x")
    assert take(box, storage) == 0
    assert [path for path in outside.rglob("*") if not path.is_dir()] == []


def test_a_full_or_deep_outbox_holds_nobody_up(storage: Path, box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pilot_outbox, "MOST_ENTRIES", 30)
    deep = box.joinpath(*"d" * 100)
    deep.mkdir(parents=True)
    (deep / "x").write_text("")
    assert take(box, storage) == 0 and (deep / "x").exists()
    for number in range(50):
        (box / f"junk{number}").write_text("")
    take(box, storage)
    assert len(list(box.glob("junk*"))) >= 20


def test_on_another_file_system_a_copy_is_taken(storage: Path) -> None:
    if os.stat("/dev/shm").st_dev == storage.stat().st_dev:
        lacking("a second file system")
    box = Path("/dev/shm") / f"outbox-{os.getpid()}"
    box.mkdir()
    try:
        left(box, "user.ada", "far", "from afar")
        assert take(box, storage) == 1
    finally:
        for path in sorted(box.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        box.rmdir()
    kept = place(storage, "user.ada", "far").path
    assert kept.read_text() == "from afar" and list(kept.parent.iterdir()) == [kept]
