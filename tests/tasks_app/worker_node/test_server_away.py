"""A server that is busy or gone for a while costs time and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tasks_app.worker_node.pilot.site_client import Client, RefusedError
from tests.tasks_app.worker_node.running import TELL, Pilots, address
from tests.tasks_app.worker_node.site import LIMIT_S, TOKEN, Site

WAITS_AT_THE_GATE = TELL + 'tell(f"pid/{os.getpid()}")\nopen(sys.argv[2]).read()\nopen("out", "w").write("done")\n'


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A named pipe: who reads it waits until the test has written to it and closed it."""
    path = tmp_path / "gate"
    os.mkfifo(path)
    return path


def test_a_server_that_goes_away_during_a_job_and_comes_back_gets_the_result(
    site: Site, pilots: Pilots, gate: Path
) -> None:
    job = site.offer(WAITS_AT_THE_GATE, f"{address(site)} {gate}", outputs=("out",))
    pilot = pilots.start()
    site.wait(lambda: len(site.of(job)) > 3, "heartbeats of the job")
    site.close()
    pilots.output(pilot).wait_for("server.away path=/api/v1/pilot/update_job")
    gate.write_text("go")
    pilots.output(pilot).wait_for("payload.ended exit_code=0")
    assert pilot.poll() is None
    site.open()
    assert site.wait_final(job)["job_status"] == "finished"
    assert pilot.wait(LIMIT_S) == 0


def test_a_busy_server_is_asked_again(site: Site, pilots: Pilots) -> None:
    site.refuse_all = True
    job = site.offer("run_command", "-- true")
    pilot = pilots.start()
    site.wait(lambda: len(site.calls) >= 2, "two attempts")
    with site.changed:
        site.refuse_all = False
    assert site.wait_final(job)["job_status"] == "finished"
    assert pilot.wait(LIMIT_S) == 0


def test_states_that_the_server_missed_are_told_before_the_final_one(site: Site, pilots: Pilots, gate: Path) -> None:
    job = site.offer(WAITS_AT_THE_GATE, f"{address(site)} {gate}", outputs=("out",))
    site.deaf = True
    # Where the last contact is two heartbeats ago, the pilot asks before it stores outputs whether the job is still its own.
    pilot = pilots.start(heartbeat_s=60)
    site.wait_call("/told/pid/")
    gate.write_text("go")
    pilots.output(pilot).wait_for("payload.ended")
    with site.changed:
        site.deaf = False
    site.wait_final(job)
    assert site.states(job) == ["starting", "running", "finished"]
    assert pilot.wait(LIMIT_S) == 0


def test_patience_has_an_end(site: Site, pilots: Pilots) -> None:
    site.close()
    assert pilots.run("--patience", "0.5") == 3


def test_a_wrong_token_is_not_tried_again(site: Site, pilots: Pilots, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.tasks_app.worker_node.running.TOKEN", "another")
    assert pilots.run() == 1
    assert site.calls == ["/api/v1/pilot/acquire_jobs"]


def test_a_report_that_is_too_large_for_the_server_fails_the_job_with_that_reason(site: Site, pilots: Pilots) -> None:
    site.largest_body = 20_000
    names = tuple(f"out{number}" for number in range(100))
    job = site.offer("#!/bin/sh\ntouch $(seq -f out%.0f 0 99)\n", outputs=names)
    assert pilots.run() == 0
    final = site.wait_final(job)
    assert (final["job_status"], final["pilot_error_code"]) == ("failed", 1319)
    assert "(files: 101) is too large: the server answered 413" in final["pilot_error_diag"]


def test_a_body_that_no_server_takes_is_not_even_sent(site: Site) -> None:
    with pytest.raises(RefusedError, match="exceed the limit of 10485760") as refused:
        Client(site.url, TOKEN).post("/api/v1/pilot/update_job", {"job_id": "x" * 11_000_000}, patience_s=30)
    assert (refused.value.status, site.calls) == (413, [])
