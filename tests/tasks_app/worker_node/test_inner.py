"""How a job of PanDA's pilot comes to the program that puts up its walls."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.dispatch.description import behind_walls
from tasks_app.worker_node.pilot import job_folders, walls
from tasks_app.worker_node.pilot.inner import SETTINGS, bring_back
from tasks_app.worker_node.pilot.oneword import as_word, of_word
from tests.lacking import lacking
from tests.tasks_app.worker_node.running import CHECKOUT
from tests.tasks_app.worker_node.site import LIMIT_S, TRANSFORMS

PROGRAM = f"walls_{'0' * 32}"
MOST_FILES = 1000
"""Inputs of a job: what `nMaxFilesPerJob` may be at most."""


def job_of(names: list[str]) -> dict[str, Any]:
    """A job with these inputs, which its parameters name once more, as prun has it."""
    chance = random.Random(1)
    return {
        "transformation": "run_command",
        "jobPars": f'-i "{quote(str(names))}" -p "python%20hits.py%20%25IN"',
        "inFiles": ",".join(names),
        "fsize": ",".join(str(chance.randrange(10**8, 10**10)) for _ in names),
        "checksum": ",".join(f"ad:{chance.getrandbits(32):08x}" for _ in names),
        "minRamCount": 1800,
        "maxWalltime": 0,
        "maxDiskCount": 20_000,
        "maxwdir": 0,
        "container_name": "",
        "outFiles": "user.ada.0123456789.out._000001.root",
    }


@pytest.mark.parametrize("kind", ["numbered", "random"])
def test_the_shell_of_pandas_pilot_starts_a_job_of_as_many_files_as_there_may_be(kind: str) -> None:
    chance = random.Random(2)
    names = {
        "numbered": [f"user.ada.0123456789._{n:06d}.hits.pool.root.1" for n in range(MOST_FILES)],
        "random": [f"{UUID(int=chance.getrandbits(128))}.pool.root.1" for _ in range(MOST_FILES)],
    }[kind]
    plain = job_of(names)
    job = behind_walls(plain, PROGRAM)
    # As that pilot does, with a function in the place of the program, which is not here.
    command = f'{PROGRAM}() {{ printf %s "$*"; }}; {job["transformation"]} {job["jobPars"]}'
    done = subprocess.run(["/bin/bash", "-c", command], capture_output=True, text=True, check=True)
    assert of_word(done.stdout)[:3] == [plain["transformation"], plain["jobPars"], plain["inFiles"]]


class Inner:
    """The program as a process, with nothing round it."""

    def __init__(self, folder: Path) -> None:
        self.slot_mb = 0
        self.here, self.payloads = folder / "here", folder / "payloads"
        for path in (self.here, self.payloads):
            path.mkdir()
        self._about = {
            "server": "",
            "programs": str(TRANSFORMS),
            "payloads": str(self.payloads),
            "readable": [],
            "network": False,
        }

    def start(self, program: str, inputs: str, parameters: str = "", **told: str | int) -> subprocess.Popen[str]:
        job = {
            "transformation": program,
            "jobPars": parameters,
            "inFiles": inputs,
            "fsize": "",
            "checksum": "",
            "minRamCount": 0,
            "maxWalltime": 0,
            "maxDiskCount": 0,
            "maxwdir": 0,
            "outFiles": "",
            **told,
        }
        script = "import sys; from tasks_app.worker_node.pilot.inner import main; "
        script += "sys.argv[0] = sys.argv[1]; sys.exit(main(sys.argv[2:]))"
        words = [str(self.here / "program"), behind_walls(job, PROGRAM)["jobPars"]]
        env = os.environ | {
            SETTINGS: json.dumps(self._about | {"memory_mb": self.slot_mb}),
            "PYTHONPATH": str(CHECKOUT),
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, *words], cwd=self.here, env=env, stderr=subprocess.PIPE, text=True
        )
        return self.process


@pytest.fixture
def inner(tmp_path: Path) -> Iterator[Inner]:
    found = walls.find()
    if isinstance(found, str):
        lacking(found)
    made = Inner(tmp_path)
    yield made
    made.process.kill()
    made.process.communicate()


def wait_until(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


SAVES = """#!/bin/sh
exec timeout 1000 python3 -c '
import os, signal
signal.signal(signal.SIGTERM, lambda *_: (open("saved", "w").close(), os._exit(0)))
open("at-work", "w").close()
while True: signal.pause()'
"""


def test_a_program_of_the_users_own_may_save_its_work_behind_the_inner_walls(inner: Inner) -> None:
    (inner.here / "mine").write_text(SAVES)
    process = inner.start("mine", "mine")
    wait_until(lambda: bool(list(inner.payloads.glob("*/at-work"))), "the program is at work")
    process.terminate()
    process.communicate(timeout=LIMIT_S)
    assert process.returncode == 128 + signal.SIGTERM
    assert (inner.here / "saved").exists() and not list(inner.payloads.iterdir())


def test_outputs_with_holes_count_with_all_of_their_length(inner: Inner) -> None:
    (inner.here / "mine").write_text("#!/bin/sh\ntruncate -s 60M out.1; truncate -s 60M out.2\n")
    process = inner.start("mine", "mine", outFiles="out.1,out.2,log.tgz", maxDiskCount="100")
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 1
    assert "including 120 MB of holes in outputs, its limit is 100 MB" in err


FORGETS = """#!/bin/sh
python3 -c '
import time
kept = b"x" * (200 << 20)
while True: time.sleep(1000)'
"""
IN_MEMORY = """#!/bin/sh
python3 -c '
import os, time
file = os.memfd_create("unseen")
for _ in range(200): os.write(file, bytes(1 << 20))
while True: time.sleep(1000)'
"""


@pytest.mark.parametrize("program", [FORGETS, IN_MEMORY], ids=["heap", "memfd"])
def test_a_job_that_takes_more_memory_than_its_task_declared_is_ended(inner: Inner, program: str) -> None:
    (inner.here / "mine").write_text(program)
    _, err = inner.start("mine", "mine", minRamCount=90).communicate(timeout=LIMIT_S)
    assert inner.process.returncode == 1
    assert re.search(r"The payload used [12]\d\d MB, its limit is 100 MB\n$", err), err


def test_a_job_that_declares_no_memory_has_that_of_its_slot(inner: Inner) -> None:
    inner.slot_mb = 150
    (inner.here / "mine").write_text(FORGETS)
    _, err = inner.start("mine", "mine").communicate(timeout=LIMIT_S)
    assert inner.process.returncode == 1 and ", its limit is 150 MB\n" in err, err


def test_a_job_that_runs_longer_than_its_wall_time_is_ended_and_may_save_its_work(inner: Inner) -> None:
    (inner.here / "mine").write_text(SAVES)
    _, err = inner.start("mine", "mine", maxWalltime=1).communicate(timeout=LIMIT_S)
    assert inner.process.returncode == 1
    assert re.fullmatch(r"The payload ran for [1-9]\d*\.\d s, its limit is 1 s of wall time\n", err), err
    assert (inner.here / "saved").exists() and not list(inner.payloads.iterdir())


LIMITS_SEEN = """#!/usr/bin/env python3
import resource
kept = b"x" * (50 << 20)
open("seen", "w").write(str(resource.getrlimit(resource.RLIMIT_DATA)))
"""


def test_a_job_within_its_limits_ends_well_and_the_kernel_holds_each_process_to_twice_its_memory_and_2_gb(
    inner: Inner,
) -> None:
    (inner.here / "mine").write_text(LIMITS_SEEN)
    limits = {"minRamCount": 180, "maxWalltime": 600, "maxDiskCount": 100, "maxwdir": 1000}
    _, err = inner.start("mine", "mine", **limits).communicate(timeout=LIMIT_S)
    assert (inner.process.returncode, err) == (0, "")
    most = (2 * 200 + 2048) << 20
    assert (inner.here / "seen").read_text() == str((most, most))


def test_what_leads_out_is_not_brought_back_from_below_long_paths_either(tmp_path: Path) -> None:
    """That pilot's tar goes down there, and follows links."""
    folder, here = tmp_path / "payload", tmp_path / "here"
    here.mkdir()
    for name, levels, kept in [("long", 50, True), ("deep", job_folders.DEEPEST, False)]:
        (folder / name).mkdir(parents=True)
        bottom = os.open(folder / name, os.O_RDONLY)
        for _ in range(levels):
            os.mkdir("d" * 100, dir_fd=bottom)
            above, bottom = bottom, os.open("d" * 100, os.O_RDONLY, dir_fd=bottom)
            os.close(above)
        os.symlink("/etc/passwd", "link", dir_fd=bottom)
        os.symlink("link", "fine", dir_fd=bottom)
        bring_back(folder, here, set())
        assert ((here / name).exists(), os.listdir(bottom)) == (kept, ["fine"] if kept else ["link", "fine"])
        os.close(bottom)


LARGE_BYTES = 1 << 33
"""Of a file that takes seconds to read, and nothing on the disk."""


def test_a_job_that_is_told_to_end_while_its_inputs_are_read_reads_no_further_and_starts_nothing(inner: Inner) -> None:
    """That pilot kills it 3 s later."""
    (inner.here / "mine").write_text("#!/bin/sh\ntrap '' TERM; touch started; sleep 1\n")
    with (inner.here / "large").open("wb") as file:
        file.truncate(LARGE_BYTES)
    process = inner.start("mine", "large,mine")

    reading = psutil.Process(process.pid)
    wait_until(lambda: str(inner.here / "large") in {file.path for file in reading.open_files()}, "the input is read")
    process.terminate()
    _, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, err) == (128 + signal.SIGTERM, "")
    assert not (inner.here / "started").exists()


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=8))
def test_texts_come_back_from_a_word_in_which_there_is_nothing_for_a_shell(texts: list[str]) -> None:
    word = as_word(texts)
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._]*", word)
    assert of_word(word) == texts
