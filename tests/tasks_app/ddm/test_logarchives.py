"""Log archives are walked through within bounds, whatever is in them."""

from __future__ import annotations

import gzip
import io
import itertools
import os
import tarfile
import threading
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from tasks_app.ddm import logarchives, small_files


def long_header(type: bytes, size: int) -> bytes:
    """Archive of a file with a long name, or another header before its own, of so many bytes: as a packed file."""
    head = tarfile.TarInfo("././@LongLink")
    head.type, head.size = type, size
    text = (
        f"{size} comment={'y' * size}"[: size - 1] + "\n" if type in (tarfile.XHDTYPE, tarfile.XGLTYPE) else "a" * size
    )
    padded = text.encode() + bytes(-size % tarfile.BLOCKSIZE)
    return gzip.compress(head.tobuf(tarfile.GNU_FORMAT) + padded + small("payload.stdout"), mtime=0)


def small(name: str, size: int = 4, said: dict[str, str] | None = None) -> bytes:
    """The member of an archive: 4 bytes, whatever its headers say."""
    info = tarfile.TarInfo(name)
    info.size, info.pax_headers = size, said or {}
    return info.tobuf(tarfile.PAX_FORMAT) + b"text" + bytes(tarfile.BLOCKSIZE - 4)


@pytest.mark.parametrize("type", [tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_long_headers_are_not_taken_into_memory(tmp_path: Path, type: bytes) -> None:
    path = tmp_path / "log.tgz"
    path.write_bytes(long_header(type, 30_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(
            small_files.StorageError, match="cannot be shown: a name in it has more than 64 KiB of headers"
        ):
            small_files.read_log(path, limit=10)
        with path.open("rb") as opened, pytest.raises(logarchives.TooMuchError):
            logarchives.holds_secrets(opened)
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()
    path.write_bytes(long_header(type, 60_000))
    with path.open("rb") as opened:
        assert not logarchives.holds_secrets(opened), "less is read"


STOPPED = logarchives.Clocks(busy=lambda: 0.0, wall=lambda: 0.0)


def test_very_many_files_are_searched_without_remembering_each(tmp_path: Path) -> None:
    path = tmp_path / "log.tar"
    path.write_bytes(small("x") * 5000)
    tracemalloc.start()
    try:
        with path.open("rb") as opened:
            assert not logarchives.holds_secrets(opened, STOPPED)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("begun", ["other", "payload.stdout"])
def test_a_size_that_is_not_true_is_not_counted_to(tmp_path: Path, begun: str) -> None:
    path = tmp_path / "log.tar"
    path.write_bytes(small(begun, 10**15))
    with pytest.raises(small_files.StorageError):
        small_files.read_log(path, limit=10)
    with path.open("rb") as opened, pytest.raises(EOFError):
        logarchives.holds_secrets(opened)


@pytest.mark.parametrize("size", ["-5", str(2**63), "9" * 5000, "many"])
def test_a_size_that_no_file_can_have_ends_the_reading(tmp_path: Path, size: str) -> None:
    path = tmp_path / "log.tar"
    path.write_bytes(small("payload.stdout", said={"size": size}))
    with pytest.raises(small_files.StorageError, match="cannot be read as a log archive"):
        small_files.read_log(path, limit=10)


def test_files_with_holes_are_passed_over(tmp_path: Path) -> None:
    holes = {"GNU.sparse.map": "0,4", "GNU.sparse.size": str(10**15), "GNU.sparse.numblocks": "1"}
    path = tmp_path / "log.tar"
    path.write_bytes(small("payload.stdout", said=holes) + small("payload.stderr"))
    found = small_files.read_log(path, limit=10)
    assert [tail.name for tail in found.tails] == ["payload.stderr"] and found.members == [("payload.stderr", 4)]
    path.write_bytes(small("x.pem", said=holes))
    with path.open("rb") as opened:
        assert logarchives.holds_secrets(opened), "nobody looks for keys among holes"


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(b"", mtime=0) * 100_000,
        gzip.compress(bytes(10_000_000), mtime=0),
        gzip.compress(b"", mtime=0) + bytes(10_000_000),
    ],
    ids=["empty parts", "zeros", "zeros behind it"],
)
@pytest.mark.parametrize(
    ("clock", "looks", "said"), [("busy", 5, "more than 5 s of a processor"), ("wall", 20, "more than 20 s$")]
)
def test_reading_ends_when_it_takes_long(content: bytes, clock: str, looks: int, said: str) -> None:
    """Also where nothing comes of it."""
    seconds = itertools.count()
    unpacked = logarchives.Unpacked(io.BytesIO(content), replace(STOPPED, **{clock: lambda: next(seconds)}))
    with pytest.raises(logarchives.TooLongError, match=said):
        while unpacked.read(1000):
            pass
    assert next(seconds) == looks + 2


def test_no_more_of_a_file_is_read_than_archives_may_weigh(tmp_path: Path) -> None:
    """What is behind an archive is nothing when it is unpacked, and a file with a hole there takes no room."""
    path = tmp_path / "log.tgz"
    path.write_bytes(gzip.compress(small("payload.stdout"), mtime=0))
    os.truncate(path, 2 * 1024**3)
    with path.open("rb") as opened:
        with pytest.raises(logarchives.TooMuchError, match="more than 260 MiB"):
            logarchives.holds_secrets(opened, STOPPED)
        assert opened.tell() < 261 * 1024**2
    os.truncate(path, 10_000_000)
    with path.open("rb") as opened:
        assert not logarchives.holds_secrets(opened, STOPPED)


class Waits(io.BytesIO):
    """A file whose reader waits while another thread has the processor."""

    def read(self, size: int | None = -1) -> bytes:
        other = threading.Thread(target=self._work)
        other.start()
        other.join()
        return super().read(size)

    def _work(self) -> None:
        while time.thread_time() < 0.1:
            pass


def test_what_others_do_on_the_machine_is_not_counted_as_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logarchives, "BUSY_S", 0.1)
    assert not logarchives.holds_secrets(Waits(gzip.compress(small("payload.stdout"), mtime=0)))
