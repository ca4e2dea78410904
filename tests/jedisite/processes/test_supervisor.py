"""The supervisor, with real processes and real signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jedisite.processes.supervisor import Event, Process, Supervisor, next_delay
from tests.jedisite.waiting import is_gone, until

ROOT = Path(__file__).resolve().parents[3]
STUBBORN = "trap '' TERM; while :; do sleep 600; done"


@pytest.fixture
def events() -> list[Event]:
    return []


@pytest.fixture
def supervisor(events: list[Event]) -> Iterator[Supervisor]:
    with Supervisor(events.append, grace_s=0.2) as supervisor:
        yield supervisor


@pytest.fixture
def program() -> Iterator[Callable[..., tuple[subprocess.Popen[str], list[int]]]]:
    """Run `hold_children.py` with commands; gives the process and the pids of its children."""
    started = []

    def start(*commands: str, grace_s: float = 60) -> tuple[subprocess.Popen[str], list[int]]:
        command = [sys.executable, "-m", "tests.jedisite.hold_children", str(grace_s), *commands]
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            # The tests themselves may run under nohup.
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
        )
        started.append(process)
        assert process.stdout
        return process, json.loads(process.stdout.readline())

    yield start
    for process in started:
        process.kill()
        process.communicate()


def sh(command: str, name: str = "child", log: Path | None = None) -> Process:
    return Process(name, ("/bin/sh", "-c", command), log=log)


def written(path: Path) -> str:
    return path.read_text() if path.exists() else ""


@pytest.mark.parametrize(
    ("last_s", "ran_s", "expected_s"),
    [(0, 0, 0.5), (0.5, 1, 1), (1, 59.9, 2), (16, 1, 30), (30, 1, 30), (30, 60, 0.5), (0, 3600, 0.5)],
)
def test_the_delay_doubles_up_to_a_limit_and_begins_anew_after_a_steady_run(last_s, ran_s, expected_s):
    assert next_delay(last_s, ran_s) == expected_s


def test_a_killed_child_is_started_again(supervisor, events):
    supervisor.start(sh("exec sleep 600"))
    first = supervisor.pids()["child"]
    os.kill(first, signal.SIGKILL)
    until(lambda: supervisor.pids().get("child", first) != first, "the child runs again", supervisor.step)
    assert [event.what for event in events] == ["started", "died", "started"]
    assert events[1].detail == "ended by SIGKILL, starts again in 0.5 s"


def test_what_a_dead_child_left_in_its_group_is_killed_before_it_is_started_again(supervisor, tmp_path):
    left = tmp_path / "left"
    supervisor.start(sh(f"sleep 600 & echo $! >> {left}; wait"))
    until(lambda: written(left).endswith("\n"), "the child has a child", supervisor.step)
    grandchild = int(left.read_text())
    os.kill(supervisor.pids()["child"], signal.SIGKILL)
    until(lambda: written(left).count("\n") == 2, "the child runs again", supervisor.step)
    assert is_gone(grandchild)


def test_children_are_told_in_reverse_order_and_all_are_gone_afterwards(supervisor, events, tmp_path):
    told = tmp_path / "told"
    for name in ("web", "agents", "pilots"):
        command = f"trap 'echo {name} >> {told}; exit 0' TERM; echo up; while :; do sleep 600 & wait; done"
        supervisor.start(sh(command, name, tmp_path / f"{name}.log"))
    until(
        lambda: all(written(log) for log in map(tmp_path.joinpath, ("web.log", "agents.log", "pilots.log"))), "all run"
    )
    groups = list(supervisor.pids().values())
    supervisor.stop_all(grace_s=60)
    assert told.read_text().split() == ["pilots", "agents", "web"]
    assert [(event.what, event.name) for event in events[3:]] == [("stopped", n) for n in ("pilots", "agents", "web")]
    for group in groups:
        until(lambda group=group: not group_lives(group), "the group is gone")


def group_lives(group: int) -> bool:
    """Whether a process of the group lives; zombies that nobody reaps do not count."""
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return any(not is_gone(pid) and group_of(pid) == group for pid in pids)


def group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


def test_a_child_that_does_not_obey_is_killed_with_its_group(supervisor, events, tmp_path):
    log = tmp_path / "log"
    supervisor.start(sh(f"echo up; {STUBBORN}", log=log))
    until(lambda: written(log), "the child ignores SIGTERM")
    group = supervisor.pids()["child"]
    supervisor.stop_all(grace_s=0.1)
    assert (events[-1].what, events[-1].detail) == ("killed", "ended by SIGKILL")
    until(lambda: not group_lives(group), "the group is gone")


def test_a_child_that_does_not_obey_is_killed_with_descendants_in_groups_of_their_own(supervisor, tmp_path):
    below = tmp_path / "below"
    supervisor.start(sh(f"setsid sh -c 'sleep 600 & echo $! > {below}; {STUBBORN}' & {STUBBORN}"))
    until(lambda: written(below).endswith("\n"), "a descendant has a group of its own")
    pid = int(below.read_text())
    assert group_of(pid) != supervisor.pids()["child"]
    supervisor.stop_all(grace_s=0.1)
    until(lambda: is_gone(pid), "the descendant is gone")


def test_a_child_can_be_said_to_die_of_another_signal(tmp_path):
    """A supervisor whose child does not obey is killed."""
    ready = tmp_path / "ready"
    code = f"""
import signal
from jedisite.processes.supervisor import Process, Supervisor
with Supervisor(lambda event: print(event.detail, flush=True)) as supervisor:
    child = "trap '' TERM; echo > {ready}; exec sleep 600"
    supervisor.start(Process("child", ("/bin/sh", "-c", child), dies_of=signal.SIGKILL))
    supervisor.run()
"""
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        pid = int(process.stdout.readline().removeprefix("pid "))
        until(lambda: written(ready), "the child ignores SIGTERM")
        process.kill()
    until(lambda: is_gone(pid), "the child is gone")


def test_output_is_added_to_the_log(supervisor, tmp_path):
    log = tmp_path / "log" / "child.log"
    supervisor.start(sh("echo out; echo err >&2; exit 3", log=log))
    until(lambda: written(log).count("err") == 2, "it ran twice", supervisor.step)
    assert log.read_text() == "out\nerr\n" * 2


def test_a_program_that_cannot_be_run_is_an_error_at_first_and_an_event_later(supervisor, events, tmp_path):
    with pytest.raises(FileNotFoundError):
        supervisor.start(Process("missing", (str(tmp_path / "missing"),)))
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\nrm $0\n")
    script.chmod(0o755)
    supervisor.start(Process("once", (str(script),)))
    until(lambda: "failed" in [event.what for event in events], "it was tried again", supervisor.step)
    assert events[-1].detail.endswith("tried again in 1 s")


def test_waiting_takes_no_processor_time(supervisor):
    supervisor.start(sh("exec sleep 600"))
    before = time.process_time()
    supervisor.step(0.5)
    assert time.process_time() - before < 0.2


def test_signals_mean_again_what_they_meant_before():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)}
    with Supervisor(lambda event: None):
        assert signal.getsignal(signal.SIGTERM) != before[signal.SIGTERM]
    assert before == {number: signal.getsignal(number) for number in before}


def test_only_the_main_thread_may_supervise():
    caught: list[RuntimeError] = []

    def supervise() -> None:
        try:
            with Supervisor(lambda event: None):
                pass
        except RuntimeError as exc:
            caught.append(exc)

    thread = threading.Thread(target=supervise)
    thread.start()
    thread.join()
    assert "main thread" in str(caught[0])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_signal_stops_all(program, number):
    process, children = program("exec sleep 600", "exec sleep 600")
    process.send_signal(number)
    assert process.wait(60) == 0
    assert all(is_gone(pid) for pid in children)


def test_a_second_interrupt_kills_at_once(program):
    process, children = program(STUBBORN, grace_s=3600)

    def interrupt_again() -> bool:
        process.send_signal(signal.SIGINT)
        return process.poll() is not None

    until(interrupt_again, "the supervisor has ended")
    # The last interrupt may come when the supervisor has done its work and the interpreter ends.
    assert process.returncode in (0, -signal.SIGINT)
    assert all(is_gone(pid) for pid in children)


def test_children_end_when_the_supervisor_is_killed(program):
    process, children = program("exec sleep 600", "exec sleep 600")
    process.kill()
    until(lambda: all(is_gone(pid) for pid in children), "the children are gone")
