"""What tasks made is fetched with the client and the command: whole, checked, and never over something else."""

from __future__ import annotations

import hashlib
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django.live_server_helper import LiveServer

from tasks_app.ddm.addresses import storage_path
from tasks_app.ddm.local_files import file_url
from tasks_app.gpi.client import Client, Conflict, NotAllowed, NotFound, Unavailable, save
from tasks_app.models import Dataset, File, Task
from tests.tasks_app.gpi.test_client import script

__all__ = ["script"]
CONTENTS = {"a.root": b"a" * 3_000_000, "b.root": b"", "x.log.tgz": b"no archive"}


@pytest.fixture
def task(make_task: Callable[..., Task], make_dataset: Callable[..., Dataset], tmp_path: Path, settings: Any) -> Task:
    """A task of ada with two outputs, a log that cannot be sent, a failed output, and an input."""
    settings.JEDI_STORAGE = tmp_path / "storage"
    made = make_task(status="done")
    sets = {kind: make_dataset(made, type=kind, name=f"user.ada.{kind}") for kind in ("output", "log", "input")}
    for lfn, kind, status in (
        ("a.root", "output", "finished"),
        ("b.root", "output", "finished"),
        ("c.root", "output", "failed"),
        ("x.log.tgz", "log", "finished"),
        ("in.root", "input", "finished"),
    ):
        content = CONTENTS.get(lfn)
        path = storage_path(settings.JEDI_STORAGE.resolve(), "user.ada", lfn)
        if content is not None:
            path.parent.mkdir(parents=True)
            path.write_bytes(content)
        File.objects.create(
            task_id=made.id,
            dataset_id=sets[kind].id,
            lfn=lfn,
            type=kind,
            status=status,
            scope="user.ada",
            surl=file_url(path),
            size=len(content or b""),
            checksum=f"ad:{zlib.adler32(content or b''):08x}",
        )
    return made


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.django_db(transaction=True)
def test_outputs_of_a_task_are_fetched_once(
    live_server: LiveServer, make_token: Callable[..., str], task: Task, tmp_path: Path
) -> None:
    site, to, seen = Client(live_server.url, make_token(name="ada")), tmp_path / "new" / "mine", []
    got = site.task(task.id).download(to, on_file=seen.append)
    assert got == seen == [to / "a.root", to / "b.root"] and names(to) == ["a.root", "b.root"]
    assert {path.name: path.read_bytes() for path in got}.items() <= CONTENTS.items()
    kept = (to / "a.root").stat().st_mtime_ns
    assert site.download(task.id, to) == got and (to / "a.root").stat().st_mtime_ns == kept
    with pytest.raises(Conflict, match="cannot be searched for secrets"):
        site.download(task.id, to, logs=True)
    (to / "b.root").write_bytes(b"my own")
    (to / "a.root").unlink()
    with pytest.raises(FileExistsError, match="other content"):
        site.download(task.id, to)
    assert names(to) == ["a.root", "b.root"] and (to / "b.root").read_bytes() == b"my own"
    with pytest.raises(NotAllowed, match="belongs to ada"):
        Client(live_server.url, make_token(name="eve")).download(task.id, tmp_path / "eves")


@pytest.mark.django_db
def test_the_command_copies_outputs(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    call_command("download", str(task.id))
    folder = tmp_path / f"task-{task.id}"
    assert {name: (folder / name).read_bytes() for name in names(folder)}.items() <= CONTENTS.items()
    assert f"2 files in task-{task.id}" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        call_command("download", str(task.id), "--to", str(tmp_path / "logs"), "--logs")
    assert names(tmp_path / "logs") == ["a.root", "b.root"]
    assert "2 files in" in (said := capsys.readouterr().err) and "1 could not be copied" in said


@pytest.mark.django_db
def test_files_are_copied_when_nobody_reads_their_names(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As with `| head`."""
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        call_command("download", str(task.id), "--to", str(tmp_path / "mine"))
    assert names(tmp_path / "mine") == ["a.root", "b.root"]
    assert capsys.readouterr().err.startswith("2 files in ")


@pytest.mark.django_db(transaction=True)
def test_the_command_takes_names_and_says_in_a_sentence_what_it_cannot_do(
    task: Task,
    make_task: Callable[..., Task],
    make_dataset: Callable[..., Dataset],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    live_server: LiveServer,
    make_token: Callable[..., str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    for place in ("file", "file/below", "/proc/none"):
        with pytest.raises(CommandError, match=f"no folder can be made at {place}: "):
            call_command("download", str(task.id), "--to", place)
    waits = make_task(status="pending", name="user.ada.waits")
    make_dataset(waits, type="input", name="user.ada.in7", files=7, files_finished=2)
    with pytest.raises(CommandError, match="pending, with 2 of 7 inputs processed and 0 given up; 0 files"):
        call_command("download", "user.ada.waits")
    with pytest.raises(CommandError, match=f"task {waits.id} is pending"):
        call_command("download", "user.ada.waits/")
    Task.objects.filter(pk=waits.id).update(name="user.ada.waits/")
    with pytest.raises(CommandError, match=f"task {waits.id} is pending"):
        call_command("download", "user.ada.waits")
    older = make_task(status="broken", name="user.ada.waits")
    for given, meant in (("user.ada.waits", older), ("user.ada.waits/", waits)):
        with pytest.raises(CommandError, match=f"task {meant.id} is {meant.status}"):
            call_command("download", given)
    assert not (tmp_path / f"task-{waits.id}").exists()
    newest = make_task(status="broken", name="user.ada.waits")
    capsys.readouterr()
    with pytest.raises(CommandError, match=f"task {newest.id} is broken"):
        call_command("download", "user.ada.waits")
    said = f"using task {newest.id}, the newest of this name; the others are {older.id}\n"
    assert capsys.readouterr().err == said
    make_task(name="user.ada.ignp/")
    for unknown in ("user.ada.nope", "9" * 30, "a\0b"):
        for command in ("download", "check_outputs", "recover_lost_files"):
            with pytest.raises(CommandError, match=r"there is no task [^ ]*\.$"):
                call_command(command, unknown)
    for command in ("download", "check_outputs", "recover_lost_files"):
        with pytest.raises(CommandError, match=r"there is no task user.ada.wait\. Did you mean user\.ada\.waits\?"):
            call_command(command, "user.ada.wait")
    with pytest.raises(NotFound, match=r"no task of the name user\.ada\.nope\.$"):
        Client(live_server.url, make_token(name="ada")).task("user.ada.nope")
    with pytest.raises(NotFound, match=r"Did you mean user\.ada\.waits\?"):
        Client(live_server.url, make_token(name="ada")).task("user.ada.wait")
    Task.objects.filter(pk=task.id).update(name="user.ada.partly", status="running")
    File.objects.filter(lfn="b.root").update(status="failed")
    Dataset.objects.filter(task=task, type="input").update(files=2, files_finished=1)
    call_command("download", "user.ada.partly", "--to", "mine")
    said = capsys.readouterr().err
    assert "1 file in mine" in said and "is running, with 1 of 2 inputs processed and 0 given up; 1 file of" in said
    Task.objects.filter(pk=task.id).update(status="finished", error_dialog="20 events were given up.")
    call_command("download", "user.ada.partly", "--to", "mine")
    assert "is finished (20 events were given up), with 1 of 2 inputs" in capsys.readouterr().err


def row(content: bytes = b"0123456789", **changes: Any) -> dict[str, Any]:
    return {"id": 7, "lfn": "x", "size": len(content), "checksum": f"ad:{zlib.adler32(content):08x}", **changes}


def answer(code: int, body: bytes, whole: int | None = None) -> tuple[int, dict[str, str], bytes]:
    """An answer that says it has `whole` bytes."""
    return code, {"Content-Length": str(len(body) if whole is None else whole)}, body


def test_what_is_cut_off_goes_on_where_it_ended(script: Any, tmp_path: Path) -> None:
    site, told, waits = script(answer(200, b"0123", 10), answer(206, b"45", 6), answer(206, b"6789"))
    assert site.fetch(row(), tmp_path).read_bytes() == b"0123456789" and len(waits) == 2
    assert [headers.get("Range") for _, _, headers, _ in told.asked] == [None, "bytes=4-", "bytes=6-"]
    assert names(tmp_path) == ["x"]


def test_a_download_that_was_given_up_goes_on_the_next_time(script: Any, tmp_path: Path) -> None:
    site, told, _ = script(answer(200, b"0123", 10), answer(206, b"", 6), answer(200, b"0123456789"), tries=2)
    with pytest.raises(Unavailable, match="was cut off"):
        site.fetch(row(), tmp_path)
    assert names(tmp_path) == [".7.part"]
    # This time the server sends all of it, whatever it is asked for.
    assert site.fetch(row(), tmp_path).read_bytes() == b"0123456789" and len(told.asked) == 3


def test_a_part_outlives_attempts_that_bring_nothing(script: Any, tmp_path: Path) -> None:
    part = tmp_path / ".7.part"
    part.write_bytes(b"0123")
    site, _, _ = script(answer(206, b"", 6), answer(206, b"", 6), tries=2)
    with pytest.raises(Unavailable, match="was cut off"):
        site.fetch(row(), tmp_path)
    assert part.read_bytes() == b"0123"
    part.write_bytes(b"0123456789")
    assert site.fetch(row(), tmp_path).read_bytes() == b"0123456789", "it is whole: nothing is asked for"


@pytest.mark.parametrize("left", [b"9999", b"99999999999", b"9876543210"])
def test_a_part_of_something_else_is_thrown_away(script: Any, tmp_path: Path, left: bytes) -> None:
    (tmp_path / ".7.part").write_bytes(left)
    answers = [answer(206, b"456789")] if len(left) < 10 else []
    site, _, _ = script(*answers, answer(200, b"0123456789"))
    assert site.fetch(row(), tmp_path).read_bytes() == b"0123456789" and names(tmp_path) == ["x"]


def test_a_file_that_is_not_what_the_books_say_gets_no_name(script: Any, tmp_path: Path) -> None:
    site, told, _ = script(answer(200, b"0123456780"))
    with pytest.raises(Unavailable, match="differs from what the site has recorded"):
        site.fetch(row(), tmp_path)
    assert names(tmp_path) == [] and len(told.asked) == 1


@pytest.mark.parametrize("name", ["..", ".", "../x", "/etc/x", "a/b", "a\\b", "a\nb", "a\x00b", ""])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="is not a name"):
        save(row(lfn=name), tmp_path / "in", lambda have: iter([b"0123456789"]))
    assert names(tmp_path) == []


def test_links_are_not_followed_and_other_checksums_are_known(tmp_path: Path) -> None:
    def content(have: int) -> Iterator[bytes]:
        return iter([b"0123456789"[have:]])

    md5 = hashlib.md5(b"0123456789", usedforsecurity=False).hexdigest()
    assert save(row(checksum=f"md:{md5}"), tmp_path, content).is_file()
    assert save(row(lfn="y", size=None, checksum=None), tmp_path, content).is_file()
    (tmp_path / ".7.part").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="part"):
        save(row(lfn="z"), tmp_path, content)
    (tmp_path / "w").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        save(row(lfn="w"), tmp_path, content)
    assert not (tmp_path / "elsewhere").exists()
