"""The payloads of jobs that take ranges of events, and of those that merge what they made, on real files."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tarfile
import threading
import urllib.parse
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import psutil
import pytest

from tasks_app.worker_node.pilot.range_channel import VARIABLE, Channel, address
from tasks_app.worker_node.pilot.range_words import Failed, Finished, offer
from tests.tasks_app.running_transforms import TRANSFORMS, Run, load, read
from tests.tasks_app.transforms.test_transforms_end import LIMIT_S, STUBBORN, wait_until

Heard = list[Finished | Failed]


def ranges(lfn: str, events: int, length: int, job: int = 9, file: int = 5) -> list[dict[str, Any]]:
    return [
        {
            "eventRangeID": f"1-{job}-{file}-{first}-3",
            "startEvent": first,
            "lastEvent": min(first + length - 1, events),
            "LFN": lfn,
        }
        for first in range(1, events + 1, length)
    ]


@contextmanager
def piloted(folder: Path, given: list[dict[str, Any]]) -> Iterator[Heard]:
    """A channel as the pilot has it, with these ranges. What it has heard is whole when the block is left."""
    waiting, heard = deque(given), Heard()

    def keep(report: Finished | Failed) -> bool:
        heard.append(report)
        return True

    channel = Channel(folder, lambda: offer([waiting.popleft()]) if waiting else offer([]), keep)
    thread = threading.Thread(target=channel.serve)
    thread.start()
    try:
        yield heard
    finally:
        channel.close()
        thread.join()
        channel.free()


def pack(target: Path, parts: dict[str, bytes]) -> None:
    with tarfile.open(target, "w") as tar:
        for name, content in parts.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def merge_list(folder: Path, output: str, *zips: str) -> None:
    (folder / f"inputFor_{output}").write_text("".join(f"{name}\n" for name in zips))


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The payloads know where the channel is, or would be."""
    monkeypatch.setenv(VARIABLE, address(tmp_path, None))


@pytest.fixture(scope="module")
def detector() -> ModuleType:
    return load("zmumu_reconstruct")


def test_events_of_real_files_are_seen_range_by_range_as_they_are_as_a_whole(
    run: Run, tmp_path: Path, detector: ModuleType
) -> None:
    run("zmumu_generate", "--max-events", "1000", "--seed", "3", "--output", "ev.npy")
    given = ranges("ev.npy", 1000, 150) + ranges("ev.npy", 1000, 150)[:1]
    given[-1] = {**given[-1], "eventRangeID": "1-9-5-5001-3", "startEvent": 1001, "lastEvent": 1001}
    with piloted(tmp_path, given) as heard:
        run("zmumu_ranges", "--output", "lab.mass.csv", "--channel", VARIABLE)
    *finished, failed = heard
    assert isinstance(failed, Failed) and failed.text == "ERR_RANGE: ev.npy has 1000 events, none from 1001 to 1001"
    numbers, masses = detector.selected(np.load(tmp_path / "ev.npy"))
    assert read(tmp_path / "jobReport.json")["nEvents"] == len(numbers) > 500
    for name, part in (("z1.tar", finished[::2]), ("z2.tar", finished[1::2])):
        pack(tmp_path / name, {Path(one.path).name: Path(one.path).read_bytes() for one in part})  # type: ignore[union-attr]
    merge_list(tmp_path, "lab.mass.csv", "z1.tar", "z2.tar")
    run("merge_events")
    head, *lines = (tmp_path / "lab.mass.csv").read_text().splitlines()
    assert head == "event,mass_gev"
    assert [int(line.partition(",")[0]) for line in lines] == list(numbers), "each event once, in their order"
    assert np.allclose([float(line.partition(",")[2]) for line in lines], masses, atol=1e-6)
    assert sorted(path.name for path in tmp_path.glob("range-*")) == []


def test_a_command_for_ranges_needs_a_pilot_that_gives_them_and_outputs(run: Run, tmp_path: Path) -> None:
    assert "has to name its outputs" in run("event_command", "--", "true", code=73).stderr
    words = [str(TRANSFORMS / "event_command"), "-o", "{'a': 'b'}", "--", "true"]
    for name, why in (
        ("", "gives no ranges of events"),
        ("EventService_1", "cannot be opened"),
        ("/x/y", "cannot be opened"),
    ):
        env = os.environ | {VARIABLE: name}
        done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 73 and why in done.stderr


YAMPL = """
import json, sys
sys.argv = ["event_command", "--channel", "PILOT_EVENTRANGECHANNEL", "-o", "{'a': 'lfn'}", "--", "echo", "$RANGE_ID", ">", "a"]
class ClientSocket:
    waiting = [b'[{"eventRangeID": "1-9-5-1-3", "startEvent": 1, "lastEvent": 2, "LFN": "x"}]', b"No more events"]
    def __init__(self, name): assert name == "EventService_1"
    def send_raw(self, said): print("said", said.decode(), flush=True)
    def try_recv_raw(self): return (len(self.waiting[0]), self.waiting.pop(0))
sys.modules["yampl"] = sys.modules["__main__"]
exec(compile(open(PATH).read(), PATH, "exec"))
"""


def test_the_channel_of_pandas_pilot_is_spoken_by_its_module(tmp_path: Path) -> None:
    script = YAMPL.replace("PATH", repr(str(TRANSFORMS / "event_command")))
    env = os.environ | {VARIABLE: "EventService_1"}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if line.startswith("said")]
    assert said[0] == said[2] == "said Ready for events"
    assert said[1].startswith(f"said {tmp_path}/lfn.1-9-5-1-3,ID:1-9-5-1-3,CPU:")
    assert (tmp_path / "lfn.1-9-5-1-3").read_text() == "1-9-5-1-3\n"
    assert read(tmp_path / "jobReport.json") == {"nEvents": 2, "files": {}}


def test_what_a_command_is_told_of_its_range_and_what_it_sees(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("here")
    told = "$FIRST_EVENT $LAST_EVENT $NUM_EVENTS $RANGE_ID $OMP_NUM_THREADS"
    command = f"cat %IN > a; echo {told} >> a; env | grep -c CHANNEL >> a; ls >> a"
    with piloted(tmp_path, ranges("in.txt", 7, 4)) as heard:
        run("event_command", "-i", "['in.txt']", "-o", "{'a': 'lfn'}", "--", command)
    text = (tmp_path / "lfn.1-9-5-5-3").read_text().split()
    assert text == ["here5", "7", "3", "1-9-5-5-3", "1", "0", "a", "in.txt"]
    assert len(heard) == 2 and not (tmp_path / "ranges").exists()


def test_nothing_is_left_of_commands_for_ranges_that_ignore_sigterm(tmp_path: Path) -> None:
    program = tmp_path / "event_command"
    program.write_text((TRANSFORMS / "event_command").read_text().replace("GRACE_S = 2.0", "GRACE_S = 0.2"))
    program.chmod(0o755)
    env = os.environ | {"OMP_NUM_THREADS": "2"}
    words = [str(program), "-o", "{'a': 'lfn'}", "-p", urllib.parse.quote(STUBBORN)]
    with piloted(tmp_path, ranges("in.txt", 9, 1)) as heard:
        transform = subprocess.Popen(words, cwd=tmp_path, env=env)
        wait_until(lambda: len(list(tmp_path.rglob("hidden"))) == 2, "two commands have begun")
        below = psutil.Process(transform.pid).children(recursive=True)
        transform.send_signal(signal.SIGTERM)
        assert transform.wait(LIMIT_S) == 128 + signal.SIGTERM
        _, alive = psutil.wait_procs(below, LIMIT_S)
        for process in alive:
            process.kill()
        assert not alive and not heard
    assert not (tmp_path / "ranges").exists()


def test_outputs_of_ranges_are_joined_by_file_and_first_event_and_the_later_job_counts(
    run: Run, tmp_path: Path
) -> None:
    pack(tmp_path / "z1.tar", {"out.1.1-7-12-1-3": b"d\n", "out.1.1-7-11-11-3": b"b\n", "out.1.1-7-11-101-3": b"c\n"})
    pack(tmp_path / "z2.tar", {"out.1.1-8-11-1-3": b"a\n", "out.1.1-8-12-1-2": b"D\n"})
    merge_list(tmp_path, "out.2", "z2.tar", "z1.tar")
    assert "no file inputFor_other says" in run("merge_events", "out.2", "other", code=65).stderr
    said = run("merge_events", "out.2").stdout
    assert (tmp_path / "out.2").read_text() == "a\nb\nc\nD\n"
    assert "jobs 8 and 7 have both processed event 1 of file 12" in said


def test_of_an_archive_with_ranges_of_other_files_too_those_of_the_jobs_own_are_joined(
    run: Run, tmp_path: Path
) -> None:
    """As a jumbo job packs them, whose outputs have the name of one of the files'."""
    pack(tmp_path / "z1.tar", {"out.3.1-9-12-1-3": b"d\n", "out.3.1-9-11-11-3": b"b\n", "out.3.1-9-13-1-3": b"e\n"})
    pack(tmp_path / "z2.tar", {"out.1.1-8-11-1-3": b"a\n"})
    merge_list(tmp_path, "out.1", "z1.tar", "z2.tar")
    run("merge_events", "--files", "11,13", "out.1")
    assert (tmp_path / "out.1").read_text() == "a\nb\ne\n"
    (tmp_path / "out.1").unlink()
    said = run("merge_events", "--files", "77", "out.1", code=65).stderr
    assert "no range has an output for out.1" in said


def test_outputs_of_ranges_that_lie_in_no_archive_are_joined_as_they_are(run: Run, tmp_path: Path) -> None:
    pack(tmp_path / "z1.tar", {"out.1.1-7-11-1-3": b"a\n"})
    (tmp_path / "out.1.1-7-11-5-3").write_bytes(b"b\n")
    merge_list(tmp_path, "out.1", "out.1.1-7-11-5-3", "z1.tar")
    run("merge_events")
    assert (tmp_path / "out.1").read_text() == "a\nb\n"


def test_outputs_of_an_earlier_job_of_the_file_have_another_number(run: Run, tmp_path: Path) -> None:
    names = {"a.000001.txt": b"a", "b.000001.txt": b"b"}
    pack(tmp_path / "z1.tar", {f"{name}.1-7-11-1-3": what for name, what in names.items()})
    for output in ("a.000002.txt", "b.000002.txt"):
        merge_list(tmp_path, output, "z1.tar")
    run("merge_events")
    assert [(tmp_path / f"{one}.000002.txt").read_text() for one in "ab"] == ["a", "b"]


def test_lists_have_another_name_with_pandas_pilot(run: Run, tmp_path: Path) -> None:
    pack(tmp_path / "z1.tar", {"out.1.1-7-11-1-3": b"a\n"})
    merge_list(tmp_path, "out.2.txt", "z1.tar")
    run("merge_events", "out.2")
    assert (tmp_path / "out.2").read_text() == "a\n"


def test_a_users_command_may_join_them(run: Run, tmp_path: Path) -> None:
    pack(tmp_path / "z.tar", {f"o.1-7-11-{first}-3": b"%d\n" % first for first in (9, 1, 5)})
    merge_list(tmp_path, "o", "z.tar")
    run("merge_events", "-j", "tac%20%25IN%20%3E%20%25OUT")
    assert (tmp_path / "o").read_text() == "1\n5\n9\n"


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ({"o.1-7-11-1-3": b"a", "o.1-7-11-1-2": b"b"}, "is there twice, of job 7"),
        ({"o": b"a"}, "the name of o says no range of events"),
        ({}, "no range has an output for o"),
    ],
)
def test_what_cannot_be_joined_is_said(run: Run, tmp_path: Path, parts: dict[str, bytes], why: str) -> None:
    pack(tmp_path / "z.tar", parts)
    merge_list(tmp_path, "o", "z.tar")
    assert why in run("merge_events", code=65).stderr


def test_a_part_of_another_output_is_none_of_ours(run: Run, tmp_path: Path) -> None:
    pack(tmp_path / "z.tar", {"c.1-7-11-1-3": b"a"})
    for output in ("a", "b"):
        merge_list(tmp_path, output, "z.tar")
    assert "c.1-7-11-1-3 is none of the outputs a, b" in run("merge_events", code=65).stderr


def test_archives_that_cannot_be_read_are_named(run: Run, tmp_path: Path) -> None:
    pack(tmp_path / "good.tar", {"o.1-7-11-1-3": b"a" * 2000})
    pack(tmp_path / "cut.tar", {"o.1-7-11-2-3": b"a" * 2000})
    (tmp_path / "cut.tar").write_bytes((tmp_path / "cut.tar").read_bytes()[:1500])
    (tmp_path / "bad.tar").write_bytes(b"no archive")
    merge_list(tmp_path, "o", "good.tar", "cut.tar", "bad.tar", "gone.tar")
    run("merge_events", code=65)
    said = read(tmp_path / "jobReport.json")
    assert said["corruptedFiles"] == ["cut.tar", "bad.tar", "gone.tar"] and said["failure"]["kind"] == "corrupt_zip"
