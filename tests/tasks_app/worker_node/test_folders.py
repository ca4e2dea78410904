"""What a work folder takes on disk, whatever payloads do with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tasks_app.worker_node.pilot import job_folders, walls
from tasks_app.worker_node.pilot.job_folders import size_of
from tests.lacking import lacking
from tests.tasks_app.worker_node.running import CHECKOUT

BYTES = 1_000_000


def fill(name: str, folder: int) -> None:
    with open(os.open(name, os.O_WRONLY | os.O_CREAT, dir_fd=folder), "wb") as file:
        file.write(b"x" * BYTES)


def put_below(folder: Path, depth: int, name: str) -> None:
    """A file below so many folders."""
    bottom = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=bottom)
        above, bottom = bottom, os.open(name, os.O_RDONLY, dir_fd=bottom)
        os.close(above)
    fill("file", bottom)
    os.close(bottom)


def test_files_count_below_long_paths_and_odd_names_and_links_do_not(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    assert size_of(folder).kb < 100
    put_below(folder, 50, "d" * 100)
    put_below(folder, 3, os.fsdecode(b"line\nbreak \xff"))
    (tmp_path / "other").mkdir()
    put_below(tmp_path / "other", 1, "d")
    (folder / "link").symlink_to(tmp_path / "other")
    (folder / "round").symlink_to(folder)
    found = size_of(folder)
    assert 2 * BYTES <= found.kb * 1024 < 3 * BYTES and not found.unseen


def test_what_is_too_deep_or_takes_too_long_is_told(tmp_path: Path) -> None:
    put_below(tmp_path, job_folders.DEEPEST - 1, "d")
    before = len(os.listdir("/proc/self/fd"))
    assert not size_of(tmp_path).unseen
    assert size_of(tmp_path, -1.0).unseen == "it contains more files than can be counted in time"
    put_below(tmp_path, job_folders.DEEPEST, "e")
    assert size_of(tmp_path).unseen == f"folders are nested more than {job_folders.DEEPEST} deep"
    assert len(os.listdir("/proc/self/fd")) == before
    assert size_of(tmp_path / "gone") == job_folders.Size(0)


MEASURE = """
import sys
open(sys.argv[1] + "/mounted/file", "wb").write(b"x" * 3_000_000)
from pathlib import Path
from tasks_app.worker_node.pilot.job_folders import size_of
found = size_of(Path(sys.argv[1]))
print(found.kb, found.unseen)
"""


@pytest.mark.parametrize("mode", [0o000, 0o400, 0o100])
def test_a_folder_without_rights_is_measured_and_what_is_mounted_is_not(tmp_path: Path, mode: int) -> None:
    if isinstance(found := walls.find(), str):
        lacking(found)
    folder, closed = tmp_path / "job", tmp_path / "job" / "closed"
    (closed / "below").mkdir(parents=True)
    put_below(closed / "below", 1, "d")
    (folder / "mounted").mkdir()
    closed.chmod(mode)
    # Who is not root, and may not read what is his own.
    command = [
        "bwrap",
        "--unshare-user",
        "--uid",
        "1000",
        "--gid",
        "1000",
        "--cap-drop",
        "ALL",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--bind",
        str(folder),
        str(folder),
        "--tmpfs",
        str(folder / "mounted"),
        sys.executable,
        "-c",
        MEASURE,
        str(folder),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": str(CHECKOUT)}
    )
    kb, _, unseen = done.stdout.strip().partition(" ")
    assert BYTES <= int(kb) * 1024 < 2 * BYTES and not unseen
    assert closed.stat().st_mode & 0o777 == mode | 0o500
