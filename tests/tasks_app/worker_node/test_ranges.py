"""Jobs that take ranges of events, in real pilots with real payloads."""

from __future__ import annotations

import json
import os
import signal
import socket
import tarfile
import urllib.parse
import zlib
from pathlib import Path
from typing import Any

import pytest

from tasks_app.worker_node.pilot import walls
from tasks_app.worker_node.pilot.errors import Code
from tasks_app.worker_node.pilot.job import parse_job
from tasks_app.worker_node.pilot.range_book import BEGUN_AFTER_S
from tasks_app.worker_node.pilot.range_calls import RangeCalls
from tasks_app.worker_node.pilot.range_channel import NAME
from tasks_app.worker_node.pilot.range_service import RangeService, RangeStore
from tasks_app.worker_node.pilot.range_words import LONGEST, READY
from tasks_app.worker_node.pilot.site_client import Client
from tasks_app.worker_node.pilot.storage import place
from tests.lacking import lacking
from tests.tasks_app.worker_node.running import TELL, Pilots, address
from tests.tasks_app.worker_node.site import LIMIT_S, TOKEN, Site

LINES = b"".join(b"%d\n" % number for number in range(1, 41))
TAKE = urllib.parse.quote('sed -n "${FIRST_EVENT},${LAST_EVENT}p" %IN > out.txt')


def offer(site: Site, command: str = TAKE, *, length: int = 4, cores: int = 2, **more: Any) -> tuple[int, list[str]]:
    """A job with ranges of a file of 40 lines, each an event."""
    options = f"""-p "{command}" -o "{{'out.txt': 'user.jdoe.out.1'}}" -i "['in.txt']" """
    job = site.offer("event_command", options, inputs={"in.txt": LINES}, eventService="True", coreCount=cores, **more)
    return job, site.offer_ranges(job, "in.txt", 40, length)


def path_of(site: Site, lfn: str) -> Path:
    return place(site.storage, "transient", lfn).path


def members(site: Site, job: int) -> dict[str, bytes]:
    """What lies in the storage of a job's ranges, by the names of the members; all reports are checked."""
    found: dict[str, bytes] = {}
    for told in site.zips_of(job):
        content = path_of(site, told["lfn"]).read_bytes()
        assert (told["fsize"], told["adler32"]) == (len(content), f"{zlib.adler32(content):08x}")
        assert (told["objstoreID"], told["pathConvention"]) == (7, 1000)
        with tarfile.open(path_of(site, told["lfn"])) as tar:
            inside = {member.name: (tar.extractfile(member) or tar).read() for member in tar}  # type: ignore[union-attr]
        assert len(inside) == told["numEvents"] and not inside.keys() & found.keys()
        found |= inside
    return found


def test_each_range_is_processed_once_and_what_it_made_is_stored_and_reported(site: Site, pilots: Pilots) -> None:
    job, ids = offer(site)
    assert pilots.run() == 0
    final = site.wait_final(job)
    assert (final["job_status"], final["n_events"]) == ("finished", 40), final
    assert sorted(site.ranges_of(job, "finished")) == sorted(ids)
    found = members(site, job)
    assert set(found) == {f"user.jdoe.out.1.{one}" for one in ids}
    whole = b"".join(found[f"user.jdoe.out.1.{one}"] for one in ids)
    assert whole == LINES, "each range got its own events"
    assert {body["n_ranges"] for body in site.range_calls} <= {2, 3, 4} and site.range_calls[0]["n_ranges"] == 4
    for body in (*site.range_calls, *site.range_reports):
        assert (body["fence"], body["job_secret"]) == (7, f"secret-{job}")
    assert list(json.loads(final["job_output_report"])) == [f"log.{job}.tgz"], "the job itself has no outputs"
    assert pilots.leftovers() == []


def test_a_range_that_fails_is_told_and_the_others_go_on(site: Site, pilots: Pilots) -> None:
    command = urllib.parse.quote("[ $FIRST_EVENT = 5 ] && exit 3; [ $FIRST_EVENT = 9 ] && exit 0; echo %IN > out.txt")
    job, ids = offer(site, command)
    assert pilots.run() == 0
    assert site.wait_final(job)["job_status"] == "finished"
    assert set(site.ranges_of(job, "failed")) == {*ids[1:3]}
    assert set(site.ranges_of(job, "finished")) == {*ids} - {*ids[1:3]}
    said = {
        one["eventRangeID"]: one for body in site.range_reports for one in body["event_ranges"] if "errorCode" in one
    }
    assert (said[ids[1]]["errorCode"], said[ids[1]]["errorDiag"]) == (1220, "ERR_COMMAND: The command ended with 3")
    assert said[ids[2]]["errorDiag"] == "ERR_OUTPUT: The command wrote no out.txt"
    assert site.wait_final(job)["n_events"] == 32


def test_several_outputs_of_a_range_are_one_archive_and_come_together_by_output(
    site: Site, pilots: Pilots, tmp_path: Path
) -> None:
    command = urllib.parse.quote("echo $FIRST_EVENT > a; echo -$FIRST_EVENT > b")
    outputs = "{'a': 'user.jdoe.a.1', 'b': 'user.jdoe.b.1'}"
    job = site.offer("event_command", f'-p "{command}" -o "{outputs}"', eventService="True")
    site.offer_ranges(job, "in.txt", 4, 1)
    assert pilots.run() == 0
    assert site.wait_final(job)["job_status"] == "finished"
    (told,) = site.zips_of(job)
    content = path_of(site, told["lfn"]).read_bytes()
    lists = "^".join(f"inputFor_user.jdoe.{one}.7:{told['lfn']}" for one in "ab")
    merge = site.offer(
        "merge_events",
        inputs={told["lfn"]: content},
        outputs=("user.jdoe.a.7", "user.jdoe.b.7"),
        eventServiceMerge="True",
        writeToFile=lists,
    )
    assert pilots.run() == 0
    report = json.loads(site.wait_final(merge)["job_output_report"])
    texts = [Path(report[f"user.jdoe.{one}.7"]["surl"].removeprefix("file://localhost")).read_text() for one in "ab"]
    assert texts == ["1\n2\n3\n4\n", "-1\n-2\n-3\n-4\n"]


TAKES_ALL = (
    TELL
    + """
import json, socket
channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
channel.connect(os.environ["PILOT_EVENTRANGECHANNEL"])
def ask():
    channel.send(b"Ready for events")
    said = channel.recv(1 << 20).decode()
    return json.loads(said)[0] if said.startswith("[") else None
def done(one):
    open("out." + one["eventRangeID"], "w").write("done")
    channel.send(f"out.{one['eventRangeID']},ID:{one['eventRangeID']},CPU:0,WALL:0".encode())
"""
)


def test_a_killed_pilot_loses_no_range_that_it_has_reported(site: Site, pilots: Pilots) -> None:
    site.zip_time_gap = 0.05
    first = TAKES_ALL + "for _ in range(5): done(ask())\nask(); tell('five'); signal.pause()\n"
    job = site.offer(first, address(site), eventService="True")
    ids = site.offer_ranges(job, "in.txt", 20, 1)
    pilot = pilots.start()
    site.wait_call("/told/five")
    site.wait(lambda: len(site.ranges_of(job, "finished")) == 5, "reports of five ranges")
    os.kill(pilot.pid, signal.SIGKILL)
    pilot.wait(LIMIT_S)
    kept = members(site, job)
    assert set(kept) == {f"out.{one}" for one in ids[:5]}, "what is reported is stored"
    assert site.ranges_of(job, "finished") == ids[:5]


def test_a_range_that_the_payload_has_had_for_a_minute_is_told_to_have_begun(site: Site, tmp_path: Path) -> None:
    number, ids = offer(site)
    job = parse_job({"PandaID": number, "transformation": "event_command"})
    calls = RangeCalls(Client(site.url, TOKEN), job, LIMIT_S, lambda command: None)
    now = 0.0
    service = RangeService(job, tmp_path, calls, RangeStore(tmp_path, 7, lambda: None), (), clock=lambda: now)
    service.start()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as payload:
        payload.settimeout(LIMIT_S)
        payload.connect(str(tmp_path / NAME))
        for later in (0.0, BEGUN_AFTER_S):
            now = later
            payload.send(READY.encode())
            payload.recv(LONGEST)
        site.wait(lambda: bool(site.ranges_of(number, "running")), "a report of the first range")
    service.abandon()
    assert site.ranges_of(number, "running") == ids[:1]
    site.wait(service.close, "the end of its threads")


def test_a_pilot_that_is_told_to_end_stores_what_is_finished(site: Site, pilots: Pilots) -> None:
    job = site.offer(
        TAKES_ALL + "for _ in range(3): done(ask())\nask(); tell('three'); signal.pause()\n",
        address(site),
        eventService="True",
    )
    ids = site.offer_ranges(job, "in.txt", 9, 1)
    pilot = pilots.start()
    site.wait_call("/told/three")
    pilot.send_signal(signal.SIGTERM)
    assert pilot.wait(LIMIT_S) == 0
    final = site.wait_final(job)
    assert (final["job_status"], final["pilot_error_code"]) == ("failed", 1201)
    assert site.ranges_of(job, "finished") == ids[:3] and len(members(site, job)) == 3


def test_a_soft_kill_lets_the_payload_finish_what_it_has(site: Site, pilots: Pilots) -> None:
    script = """
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
one = ask(); done(ask()); tell(f"two/{os.getpid()}")
signal.sigwait({signal.SIGUSR1})
while other := ask(): done(other)
done(one)
"""
    job = site.offer(TAKES_ALL + script, address(site), eventService="True")
    ids = site.offer_ranges(job, "in.txt", 100, 1)
    pilot = pilots.start()
    payload = int(site.wait_call("/told/two/").rpartition("/")[2])
    with site.changed:
        site.commands[job] = "softkill"
    pilots.output(pilot).wait_for("ranges.softly_stopped")
    os.kill(payload, signal.SIGUSR1)
    assert pilot.wait(LIMIT_S) == 0
    assert site.wait_final(job)["job_status"] == "finished"
    assert sorted(site.ranges_of(job, "finished")) == ids[:2], "and no more, though there are ninety-eight"


def test_a_payload_goes_on_while_the_server_is_away_and_all_is_reported_when_it_is_back(
    site: Site, pilots: Pilots
) -> None:
    site.zip_time_gap = 0.05
    script = """
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
done(ask()); tell(f"one/{os.getpid()}")
signal.sigwait({signal.SIGUSR1})
while other := ask(): done(other)
"""
    job = site.offer(TAKES_ALL + script, address(site), eventService="True")
    ids = site.offer_ranges(job, "in.txt", 6, 1)
    pilot = pilots.start()
    payload = int(site.wait_call("/told/one/").rpartition("/")[2])
    with site.changed:
        site.refuse_all = True
    os.kill(payload, signal.SIGUSR1)
    pilots.output(pilot).wait_for("server.away path=/api/v1/event/update_event_ranges")
    with site.changed:
        site.refuse_all = False
    assert pilot.wait(LIMIT_S) == 0
    assert site.wait_final(job)["job_status"] == "finished"
    assert site.ranges_of(job, "finished") == ids and len(members(site, job)) == 6


def test_a_pilot_whose_job_is_not_its_own_any_more_stops_its_payload(site: Site, pilots: Pilots) -> None:
    site.zip_time_gap = 0.05
    job = site.offer(
        TAKES_ALL + "one = ask(); tell('one'); done(one); signal.pause()\n", address(site), eventService="True"
    )
    site.offer_ranges(job, "in.txt", 6, 1)
    pilot = pilots.start()
    site.wait_call("/told/one")
    with site.changed:
        site.forbidden.add(job)
    assert pilot.wait(LIMIT_S) == 0
    assert site.ranges_of(job, "finished") == []
    left = [path for path in (site.storage / "transient").rglob("*") if path.is_file()]
    assert left == [], "what nobody has taken is nobody's"


def test_a_killed_job_reports_no_more_ranges(site: Site, pilots: Pilots) -> None:
    job = site.offer(TAKES_ALL + "done(ask()); tell('one'); signal.pause()\n", address(site), eventService="True")
    site.offer_ranges(job, "in.txt", 9, 1)
    pilot = pilots.start()
    site.wait_call("/told/one")
    with site.changed:
        site.commands[job] = "tobekilled"
    assert pilot.wait(LIMIT_S) == 0
    final = site.wait_final(job)
    assert (final["job_status"], final["pilot_error_code"]) == ("failed", 1144)
    assert site.range_reports == [] and not (site.storage / "transient").exists()


def test_outputs_that_are_not_the_jobs_own_are_failures(site: Site, pilots: Pilots) -> None:
    script = (
        TAKES_ALL
        + """
os.symlink("/etc/passwd", "link"); os.mkdir("folder"); os.symlink("/etc", "etc")
for path in ("/etc/passwd", "../../x", "link", "folder", "etc/passwd", "gone", "payload.channel"):
    one = ask()
    channel.send(f"{path},ID:{one['eventRangeID']},CPU:0,WALL:0".encode())
channel.send(b"out,ID:1-2-3-4-5,CPU:0,WALL:0"); channel.send(b"nonsense"); channel.send(b"ERR_X 1-2-3-4-5: y")
one = ask(); channel.send(f"ERR_A_FATAL {one['eventRangeID']}: no".encode())
one = ask(); done(one); done(one)
"""
    )
    job = site.offer(script, address(site), eventService="True")
    ids = site.offer_ranges(job, "in.txt", 9, 1)
    assert pilots.run() == 0
    assert site.wait_final(job)["job_status"] == "finished"
    assert set(site.ranges_of(job, "failed")) == set(ids[:7]) and site.ranges_of(job, "fatal") == [ids[7]]
    assert site.ranges_of(job, "finished") == [ids[8]]
    said = {
        one["eventRangeID"]: one for body in site.range_reports for one in body["event_ranges"] if "errorCode" in one
    }
    assert {said[one]["errorCode"] for one in ids[:7]} == {1165}


def test_what_cannot_be_stored_is_failed_in_the_end(site: Site, pilots: Pilots) -> None:
    (site.storage / "transient").write_text("in the way")
    job, ids = offer(site)
    assert pilots.run() == 0
    assert site.wait_final(job)["job_status"] == "finished"
    assert set(site.ranges_of(job, "failed")) == set(ids) and not site.ranges_of(job, "finished")
    said = [one for body in site.range_reports for one in body["event_ranges"]]
    assert {one["errorCode"] for one in said} == {1137}


def test_twenty_troubles_with_the_storage_stop_the_payload(site: Site, pilots: Pilots) -> None:
    (site.storage / "transient").write_text("in the way")
    site.zip_time_gap = 0.01
    job = site.offer(TAKES_ALL + "done(ask()); signal.pause()\n", address(site), eventService="True")
    ids = site.offer_ranges(job, "in.txt", 1, 1)
    assert pilots.run() == 0
    final = site.wait_final(job)
    assert (final["job_status"], final["pilot_error_code"]) == ("failed", 1137)
    assert "20 times" in final["pilot_error_diag"] and site.ranges_of(job, "failed") == ids


def test_a_payload_behind_walls_reaches_the_channel(site: Site, tmp_path: Path) -> None:
    found = walls.find()
    if isinstance(found, str):
        lacking(found)
    pilots = Pilots(site, tmp_path / "work", "auto")
    try:
        job, ids = offer(site)
        assert pilots.run() == 0
        final = site.wait_final(job)
        assert final["job_status"] == "finished", final
        assert set(site.ranges_of(job, "finished")) == set(ids) == {name[16:] for name in members(site, job)}
    finally:
        pilots.end()


@pytest.mark.parametrize("harm", ["content", "size", "gone"])
def test_a_merge_job_names_each_input_that_is_corrupt(site: Site, pilots: Pilots, harm: str) -> None:
    inputs = {f"z{number}.tar": b"x" * 99 for number in range(3)}
    lists = "inputFor_user.jdoe.all:" + ",".join(inputs)
    job = site.offer(
        "merge_events", inputs=inputs, outputs=("user.jdoe.all",), eventServiceMerge="True", writeToFile=lists
    )
    for name in ("z0.tar", "z2.tar"):
        path = site.storage / name
        path.unlink()
        if harm != "gone":
            path.write_bytes(b"y" * (99 if harm == "content" else 98))
    assert pilots.run() == 0
    final = site.wait_final(job)
    assert final["pilot_error_code"] == (1103 if harm == "gone" else 1171), final
    assert final["corrupted_files"] == "z0.tar,z2.tar"


def test_an_input_that_is_no_archive_is_corrupt_though_its_checksum_is_right(site: Site, pilots: Pilots) -> None:
    job = site.offer(
        "merge_events",
        inputs={"z0.tar": b"x" * 99},
        outputs=("user.jdoe.all",),
        eventServiceMerge="True",
        writeToFile="inputFor_user.jdoe.all:z0.tar",
    )
    assert pilots.run() == 0
    final = site.wait_final(job)
    assert (final["pilot_error_code"], final["corrupted_files"]) == (1171, "z0.tar"), final
    assert "z0.tar cannot be read" in final["pilot_error_diag"]


def test_a_jumbo_job_brings_the_file_of_each_range_and_fails_those_whose_file_is_away(
    site: Site, pilots: Pilots
) -> None:
    """One file after the other is here: the first has gone when the third comes."""
    look = urllib.parse.quote(
        'ls ../.. > seen.txt; cat seen.txt %IN | sort -u | grep -e "[.]txt" -e "^[0-9]" > out.txt'
    )
    options = f"""-p "{look}" -o "{{'out.txt': 'user.jdoe.out.1'}}" -i "['tmpin__cnt_lab.in']" """
    job = site.offer("event_command", options, eventService="True", coreCount=1)
    told, ids = {}, dict[str, list[str]]()
    for number, name in enumerate(("one.txt", "away.txt", "three.txt", "payload.txt"), start=1):
        content = f"{number}\n".encode()
        url = site.store(name, content)
        told[name] = {"PFN": url, "fsize": len(content), "checksum": f"ad:{zlib.adler32(content):08x}"}
        ids[name] = site.offer_ranges(job, name, 4, 1, file_id=number, **told[name])
    (site.storage / "away.txt").unlink()
    assert pilots.run() == 0
    assert site.wait_final(job)["job_status"] == "finished"
    assert sorted(site.ranges_of(job, "finished")) == sorted(ids["one.txt"] + ids["three.txt"])
    assert sorted(site.ranges_of(job, "failed")) == sorted(ids["away.txt"] + ids["payload.txt"])
    found = members(site, job)
    assert b"1\n" in found[f"user.jdoe.out.1.{ids['one.txt'][0]}"]
    last = found[f"user.jdoe.out.1.{ids['three.txt'][-1]}"]
    assert b"3\n" in last and b"one.txt" not in last
    codes = {
        one["errorCode"]: one["errorDiag"]
        for body in site.range_reports
        for one in body["event_ranges"]
        if "errorCode" in one
    }
    assert "Input away.txt is not in the storage" in codes[Code.INPUT_MISSING]
    assert codes[Code.STAGE_IN_FAILED] == "Input payload.txt has a name of the pilot's own files"
