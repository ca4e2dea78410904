"""The service that keeps the slots of a machine filled: nothing outlives it, and no slot stays empty."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tasks_app.worker_node.submitters.base import (
    FIRST_DELAY_S,
    LONGEST_DELAY_S,
    PilotSpec,
    Worker,
    WorkerState,
    next_delay,
)
from tasks_app.worker_node.submitters.old_folders import sweep
from tasks_app.worker_node.submitters.pilot_kinds import pilot_command, pilot_environment
from tests.tasks_app.worker_node.running import CHECKOUT, ENDLESS, Output, address, environment, wait_gone
from tests.tasks_app.worker_node.site import LIMIT_S, TOKEN, Site

SERVICE = """
import logging, sys
from pathlib import Path
from tasks_app.worker_node.submitters.base import OneForAll, PilotSpec
from tasks_app.worker_node.submitters.local_pilots import OwnPilot, serve
logging.basicConfig(level=logging.INFO)
spec = PilotSpec("Q", sys.argv[3], heartbeat_s=0.2, isolation="none")
serve(Path(sys.argv[1]), OwnPilot(), OneForAll(sys.argv[2]), spec, int(sys.argv[4]))
"""

NOTING = SERVICE.replace(
    "from tasks_app.worker_node.submitters.base import OneForAll, PilotSpec",
    """
from tasks_app.worker_node.submitters.base import NoTokenError, OneForAll, PilotSpec, Ticket
class OneForAll:
    def __init__(self, token):
        self.token, self.refused = token, False
    def make(self, worker_id):
        print("made", self.token, file=sys.stderr)
        return Ticket(self.token)
    def renew(self, tokens):
        pass
    def killed(self, jobs):
        return ()
    def end(self, tokens):
        if not self.refused:
            self.refused = True
            raise NoTokenError("no database")
        print("ended", *tokens, file=sys.stderr)
""",
)
"""Says what becomes of tokens. The first that ends is not heard of."""

THRICE = NOTING.replace("not self.refused:", "self.refused < 3:").replace("refused = True", "refused += 1")
"""That a token has ended is heard at the fourth try."""

KILLING = SERVICE.replace("heartbeat_s=0.2", "heartbeat_s=600.0").replace(
    "logging.basicConfig",
    """
class OneForAll(OneForAll):
    def killed(self, jobs):
        print("asked about", *jobs, file=sys.stderr)
        return jobs if Path(sys.argv[1], "kill").exists() else ()
logging.basicConfig""",
)
"""Its pilots have no heartbeat, and all of its jobs are to be killed when there is a file of that name."""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def outputs() -> dict[int, Output]:
    """What processes say, by their pids."""
    return {}


@pytest.fixture
def start(site: Site, outputs: dict[int, Output]) -> Iterator[Start]:
    """Starts a process that pilots hang below; all of them are gone after the test."""
    started: list[subprocess.Popen[str]] = []

    def start(*command: str, **env: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, *command], env=environment(site) | env, cwd=CHECKOUT, stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        outputs[process.pid] = Output(process)
        return process

    yield start
    for process in started:
        process.terminate()
        try:
            process.wait(LIMIT_S)
        finally:
            process.kill()
            outputs[process.pid].join()


@pytest.fixture
def service(site: Site, start: Start, tmp_path: Path) -> Callable[[int], subprocess.Popen[str]]:
    return lambda slots: start("-c", SERVICE, str(tmp_path / "work"), TOKEN, site.url, str(slots))


def running_payloads(site: Site, count: int) -> list[list[int]]:
    """Wait until so many endless payloads run; the pids of each and of its child."""

    def told() -> list[str] | None:
        calls = [call for call in site.calls if call.startswith("/told/pid/")]
        return calls if len(calls) >= count else None

    return [[int(pid) for pid in call.split("/")[3:]] for call in site.wait(told, f"{count} payloads")]


def test_pilots_and_payloads_end_with_a_service_that_is_killed(site: Site, service: Start) -> None:
    jobs = [site.offer(ENDLESS, address(site)) for _ in range(2)]
    process = service(2)
    payloads = running_payloads(site, 2)
    pilots = [psutil.Process(leader).ppid() for leader, _ in payloads]
    process.kill()
    process.wait(LIMIT_S)
    assert [site.wait_final(job)["pilot_error_code"] for job in jobs] == [1201, 1201]
    for pid in (*pilots, *(pid for pids in payloads for pid in pids)):
        wait_gone(pid)


def test_a_slot_is_filled_again_when_its_pilot_is_killed(site: Site, service: Start, tmp_path: Path) -> None:
    site.offer(ENDLESS, address(site))
    service(1)
    [[leader, child]] = running_payloads(site, 1)
    psutil.Process(psutil.Process(leader).ppid()).kill()
    wait_gone(leader)
    wait_gone(child)
    job = site.offer("run_command", "-- true")
    assert site.wait_final(job)["job_status"] == "finished"
    assert len(list((tmp_path / "work").iterdir())) == 1, "the dead pilot's folder was left"


def test_a_kill_does_not_wait_for_the_heartbeat_of_the_pilot(
    site: Site, start: Start, tmp_path: Path, outputs: dict[int, Output]
) -> None:
    job = site.offer(ENDLESS, address(site))
    service = start("-c", KILLING, str(tmp_path / "work"), TOKEN, site.url, "2")
    [[leader, _]] = running_payloads(site, 1)
    outputs[service.pid].wait_for(f"asked about {job}\n")
    site.commands[job] = "tobekilled"
    (tmp_path / "work" / "kill").touch()
    assert site.wait_final(job)["pilot_error_code"] == 1144
    wait_gone(leader)
    assert not list((tmp_path / "work").glob("w-*/hurry"))


def test_the_token_of_a_pilot_ends_with_it_and_that_of_a_service_that_was_killed_at_the_next_start(
    site: Site, start: Start, tmp_path: Path, outputs: dict[int, Output]
) -> None:
    command = ("-c", NOTING, str(tmp_path / "work"), TOKEN, site.url, "1")
    job = site.offer(ENDLESS, address(site))
    killed = start(*command)
    [[leader, _]] = running_payloads(site, 1)
    pilot = psutil.Process(leader).ppid()
    killed.kill()
    killed.wait(LIMIT_S)
    site.wait_final(job)
    wait_gone(pilot)
    site.offer(ENDLESS, address(site))
    service = start(*command)
    running_payloads(site, 2)
    said = outputs[service.pid]
    said.wait_for("no database")
    said.wait_for(f"ended {TOKEN}")
    service.terminate()
    assert service.wait(LIMIT_S) == 0
    said.join()
    assert [line.split()[0] for line in said.lines if TOKEN in line] == ["ended", "made", "ended"]


def test_a_service_that_is_told_to_end_ends_its_pilots_and_reports_their_jobs(
    site: Site, service: Start, tmp_path: Path
) -> None:
    jobs = [site.offer(ENDLESS, address(site)) for _ in range(2)]
    process = service(2)
    payloads = running_payloads(site, 2)
    process.terminate()
    assert process.wait(LIMIT_S) == 0
    assert [site.wait_final(job)["pilot_error_code"] for job in jobs] == [1201, 1201]
    assert not any(psutil.pid_exists(pid) for pids in payloads for pid in pids)
    assert list((tmp_path / "work").iterdir()) == []


def test_many_jobs_pass_through_few_slots(site: Site, service: Start) -> None:
    jobs = [site.offer("run_command", "-- touch out", outputs=("out",), scopeOut=f"user.j{n}") for n in range(6)]
    service(2)
    assert {site.wait_final(job)["job_status"] for job in jobs} == {"finished"}
    assert len({asked["worker_id"] for asked in site.acquired}) == 2, "pilots stay for many jobs"


@pytest.mark.parametrize(
    ("state", "ran_s", "last_s", "expected_s"),
    [
        (WorkerState.FINISHED, 0.1, 8.0, 0.0),
        (WorkerState.FAILED, 0.1, 0.0, FIRST_DELAY_S),
        (WorkerState.FAILED, 0.1, 4.0, 8.0),
        (WorkerState.FAILED, 0.1, 50.0, LONGEST_DELAY_S),
        (WorkerState.FAILED, 3600.0, 50.0, FIRST_DELAY_S),
    ],
)
def test_pilots_that_fail_quickly_are_started_ever_more_slowly(
    state: WorkerState, ran_s: float, last_s: float, expected_s: float
) -> None:
    assert next_delay(last_s, Worker(1, "1", state, ran_s)) == expected_s


def test_folders_of_living_pilots_are_left_alone(tmp_path: Path) -> None:
    for name in ("w-dead", "w-alive"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".lock").touch()
    with open(tmp_path / "w-alive" / ".lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        sweep(list(tmp_path.iterdir()))
        assert [path.name for path in tmp_path.iterdir()] == ["w-alive"]


def test_a_pilot_that_outlives_its_service_is_buried_when_it_has_ended(
    site: Site, start: Start, outputs: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "work" / "w-old"
    folder.mkdir(parents=True)
    (folder / "token").write_text("old")
    quickly = NOTING.replace(
        "logging.basicConfig",
        "import tasks_app.worker_node.submitters.local_pilots as l; l.SWEEP_EVERY_S = 0.1; logging.basicConfig",
    )
    with open(folder / ".lock", "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        process = start("-c", quickly, str(tmp_path / "work"), TOKEN, site.url, "1")
        outputs[process.pid].wait_for("pilot.started")
        assert folder.exists()
    outputs[process.pid].wait_for("ended old")
    assert not folder.exists()


def test_a_database_that_is_away_is_told_once_and_not_at_each_try(
    site: Site, start: Start, outputs: dict[int, Output], tmp_path: Path
) -> None:
    service = start("-c", THRICE, str(tmp_path / "work"), TOKEN, site.url, "1")
    said = outputs[service.pid]
    os.kill(int(said.wait_for("pilot.started").split("pid=")[1]), signal.SIGKILL)
    said.wait_for("no database")
    said.wait_for(f"ended {TOKEN}")
    assert sum("no database" in line for line in said.lines) == 1


def test_what_comes_to_the_service_between_the_ends_of_pilots_is_ended_and_reaped(
    site: Site, start: Start, outputs: Any, tmp_path: Path
) -> None:
    orphan = """
import subprocess
from tasks_app.worker_node.pilot.processes import adopt_orphans
adopt_orphans()
subprocess.run(["sh", "-c", "sleep 1000 & echo orphan $! >&2"])
serve("""
    process = start("-c", SERVICE.replace("\nserve(", orphan), str(tmp_path / "work"), TOKEN, site.url, "1")
    pid = int(outputs[process.pid].wait_for("orphan ").split()[-1])
    outputs[process.pid].wait_for("orphans.killed count=1")
    assert not psutil.pid_exists(pid)


def test_orphans_that_ended_by_themselves_are_reaped_and_not_counted_as_killed(
    site: Site, start: Start, outputs: Any, tmp_path: Path
) -> None:
    orphan = """
import os, signal, subprocess
from tasks_app.worker_node.pilot.processes import adopt_orphans
adopt_orphans()
ended = "import os; child = os.fork(); child or os._exit(0); print(child)"
pid = int(subprocess.run([sys.executable, "-c", ended], capture_output=True).stdout)
os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
print("orphan", pid, file=sys.stderr)
serve("""
    process = start("-c", SERVICE.replace("\nserve(", orphan), str(tmp_path / "work"), TOKEN, site.url, "1")
    said = outputs[process.pid]
    pid = int(said.wait_for("orphan ").split()[-1])
    os.kill(int(said.wait_for("pilot.started").split("pid=")[1]), signal.SIGKILL)
    said.wait_for("pilot.ended")
    assert not psutil.pid_exists(pid)
    assert not [line for line in said.lines if "orphans.killed" in line]


def test_a_pilot_that_could_not_be_prepared_leaves_no_token(
    site: Site, start: Start, outputs: Any, tmp_path: Path
) -> None:
    full = "def full(*_): raise OSError(28, 'No space left on device')\nOwnPilot.launch = full\nlogging.basicConfig"
    said = NOTING.replace("logging.basicConfig", full).replace(
        "self.token, self.refused = token, False", "self.token, self.refused = token, True"
    )
    process = start("-c", said, str(tmp_path / "work"), TOKEN, site.url, "1")
    outputs[process.pid].wait_for(f"ended {TOKEN}")
    assert process.wait(LIMIT_S) == 1 and os.listdir(tmp_path / "work") == []


def test_pilots_get_the_token_in_a_file_and_nothing_of_the_sites() -> None:
    spec = PilotSpec("Q", "http://127.0.0.1:1", label="user", memory_mb=2000, keep=True)
    assert TOKEN not in " ".join(pilot_command(spec, 5, Path("w")))
    outer = {"DATABASE_URL": "secret", "JEDI_SECRET_KEY": "secret", "HOME": "h"}
    assert pilot_environment(outer, Path("w/token"), spec.server) == {
        "HOME": "h",
        "JEDI_PILOT_TOKEN_FILE": "w/token",
        "JEDI_SERVER_URL": spec.server,
    }


def test_the_commands_run_without_a_database(site: Site, start: Start, tmp_path: Path) -> None:
    env = {"DATABASE_URL": "postgres://nobody@127.0.0.1:1/none", "JEDI_HOME": str(tmp_path / "home")}
    jobs = [site.offer("run_command", "-- true") for _ in range(2)]
    command = start("manage.py", "pilot", "--queue", "Q", "--max-jobs", "1", "--work", str(tmp_path / "w"), **env)
    assert command.wait(LIMIT_S) == 0
    start("manage.py", "local_workers", "--queue", "Q", "--slots", "1", "--heartbeat", "1", **env)
    assert [site.wait_final(job)["job_status"] for job in jobs] == ["finished", "finished"]
    assert os.listdir(tmp_path / "home" / "work")


def test_importing_the_pilot_brings_no_django() -> None:
    code = "import sys, tasks_app.worker_node.pilot.main, tasks_app.worker_node.submitters.local_pilots; "
    code += "sys.exit('django' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, check=False).returncode == 0
