"""The server and the operator may end a job at any moment; nothing of it goes on afterwards."""

from __future__ import annotations

import json
import signal
import subprocess

import psutil
import pytest

from tests.tasks_app.worker_node.running import ENDLESS, TELL, Pilots, address, wait_gone
from tests.tasks_app.worker_node.site import LIMIT_S, Site


def start_endless(site: Site, pilots: Pilots, **job: object) -> tuple[int, subprocess.Popen[str], list[int]]:
    """A job that is running: its id, its pilot, the pids of its payload."""
    number = site.offer(ENDLESS, address(site), outputs=("out",), **job)
    pilot = pilots.start()
    pids = [int(pid) for pid in site.wait_call("/told/pid/").split("/")[3:]]
    site.wait(lambda: any(u["job_status"] == "running" for u in site.of(number)), "running")
    return number, pilot, pids


def test_tobekilled_ends_the_payload_and_the_job_fails(site: Site, pilots: Pilots) -> None:
    job, pilot, pids = start_endless(site, pilots)
    site.commands[job] = "debug,tobekilled"
    final = site.wait_final(job)
    assert (final["job_status"], final["pilot_error_code"]) == ("failed", 1144)
    assert list(json.loads(final["job_output_report"])) == [f"log.{job}.tgz"]
    assert pilot.wait(LIMIT_S) == 0
    for pid in pids:
        wait_gone(pid)
    assert pilots.leftovers() == []


SAVES = f"""{TELL}
signal.signal(signal.SIGTERM, lambda *_: (tell("saved"), os._exit(0)))
tell("at-work")
while True: signal.pause()
"""
LEAVES_THE_GROUP = """#!/bin/bash
{how} python3 -c '{program}' {address}
"""


@pytest.mark.parametrize("how", ["timeout 1000", "setsid --wait", "set -m;"])
def test_a_program_of_the_users_own_may_save_its_work_wherever_its_processes_are(
    site: Site, pilots: Pilots, how: str
) -> None:
    """Nobody but the pilot asks those that a shell has put into a group of their own."""
    program = LEAVES_THE_GROUP.format(how=how, program=SAVES, address=address(site))
    job = site.offer("mine", inputs={"mine": program.encode()})
    pilot = pilots.start()
    site.wait_call("/told/at-work")
    site.commands[job] = "tobekilled"
    assert site.wait_final(job)["pilot_error_code"] == 1144
    assert pilot.wait(LIMIT_S) == 0
    assert "/told/saved" in site.calls


def test_tobekilled_in_the_first_answer_stops_the_job_early(site: Site, pilots: Pilots) -> None:
    job = site.offer(ENDLESS, address(site))
    site.commands[job] = "tobekilled"
    assert pilots.run() == 0
    assert site.wait_final(job)["pilot_error_code"] == 1144


def test_a_job_that_is_no_longer_ours_is_stopped_and_nothing_of_it_is_stored(site: Site, pilots: Pilots) -> None:
    job, pilot, pids = start_endless(site, pilots)
    with site.changed:
        site.forbidden.add(job)
    assert pilot.wait(LIMIT_S) == 0
    for pid in pids:
        wait_gone(pid)
    assert site.states(job) == ["starting", "running"]
    assert list(site.storage.iterdir()) == []
    assert pilots.leftovers() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_pilot_that_is_told_to_end_reports_its_job(site: Site, pilots: Pilots, number: signal.Signals) -> None:
    job, pilot, pids = start_endless(site, pilots)
    pilot.send_signal(number)
    final = site.wait_final(job)
    assert (final["job_status"], final["pilot_error_code"]) == ("failed", 1201)
    assert pilot.wait(LIMIT_S) == 0
    for pid in pids:
        wait_gone(pid)
    assert pilots.leftovers() == []


def test_a_pilot_that_is_told_to_end_does_not_wait_for_a_server_that_is_away(site: Site, pilots: Pilots) -> None:
    _, pilot, pids = start_endless(site, pilots)
    site.close()
    pilot.terminate()
    assert pilot.wait(10) == 0
    for pid in pids:
        wait_gone(pid)


def test_an_idle_pilot_ends_at_once(site: Site, pilots: Pilots) -> None:
    pilot = pilots.start("--max-jobs", "5")
    site.wait_call("/api/v1/pilot/acquire_jobs")
    pilot.terminate()
    assert pilot.wait(3) == 0


def test_a_payload_dies_with_a_pilot_that_is_killed(site: Site, pilots: Pilots) -> None:
    _, pilot, pids = start_endless(site, pilots)
    pilot.kill()
    pilot.wait(LIMIT_S)
    wait_gone(pids[0])
    psutil.Process(pids[1]).kill()  # a stray child is the submitter's to find: see the tests of the local workers


def test_outputs_of_a_job_that_was_given_up_meanwhile_are_taken_back(site: Site, pilots: Pilots) -> None:
    job = site.offer("#!/bin/sh\necho late > out\n", outputs=("out",))
    site.given_up.add(job)
    assert pilots.run() == 0
    final = site.wait_final(job)
    assert final["job_status"] == "finished"
    assert set(json.loads(final["job_output_report"])) == {"out", f"log.{job}.tgz"}
    assert [path.name for path in site.storage.rglob("*") if path.is_file()] == [f"log.{job}.tgz"]
    assert pilots.leftovers() == []
