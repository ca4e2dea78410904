"""Work folders go away, whatever payloads left in them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tasks_app.worker_node.pilot.removing import remove_folder
from tasks_app.worker_node.submitters.old_folders import sweep
from tests.tasks_app.worker_node.running import Pilots
from tests.tasks_app.worker_node.site import Site

DEPTH = 3000


def dig(folder: Path, depth: int = DEPTH) -> None:
    """Folders in each other, deeper than Python's stack and than paths can be long; a file in the last."""
    fd = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)


def test_a_folder_goes_with_deep_ones_and_forbidden_ones_and_links_in_it(tmp_path: Path) -> None:
    folder, kept = tmp_path / "job", tmp_path / "kept"
    for path in (folder / "closed" / "below", kept):
        path.mkdir(parents=True)
    (folder / "closed" / "file").touch()
    (kept / "file").touch()
    (folder / "link").symlink_to(kept)
    (folder / "closed" / "link").symlink_to(kept)
    os.mkfifo(folder / "pipe")
    dig(folder)
    (folder / "closed" / "below").chmod(0)
    (folder / "closed").chmod(0)
    assert remove_folder(folder)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "kept"]


def test_what_takes_too_long_is_left_and_tried_again(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    dig(folder, 100)
    assert not remove_folder(folder, -1.0)
    assert folder.exists()
    assert remove_folder(folder)
    assert remove_folder(folder), "there is nothing to do"


def test_starting_removes_what_it_can_and_goes_on_with_what_it_cannot(tmp_path: Path) -> None:
    for name in ("w-1", "w-2"):
        (tmp_path / name).mkdir()
        dig(tmp_path / name)

    def collect(folder: Path) -> None:
        raise RecursionError(folder.name)

    assert sorted(sweep(list(tmp_path.iterdir()), collect, -1.0)) == [tmp_path / "w-1", tmp_path / "w-2"]
    assert sweep(list(tmp_path.iterdir()), collect) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", [".", "tmp"])
def test_a_payload_that_digs_costs_the_pilot_nothing(site: Site, pilots: Pilots, where: str) -> None:
    program = f"#!/usr/bin/env python3\nimport os\nos.chdir({where!r})\nfor _ in range({DEPTH}): os.mkdir('d'); os.chdir('d')\n"
    jobs = [site.offer(program), site.offer("run_command", "-- true")]
    assert pilots.run("--max-jobs", "2") == 0
    assert [site.wait_final(job)["job_status"] for job in jobs] == ["finished", "finished"]
    assert pilots.leftovers() == []
