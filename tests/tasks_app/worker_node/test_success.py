from __future__ import annotations

import json
import tarfile
import urllib.parse
import uuid
import zlib
from pathlib import Path

import pytest

from tests.tasks_app.worker_node.running import Pilots
from tests.tasks_app.worker_node.site import TOKEN, Site


def stored(site: Site, surl: str) -> Path:
    path = Path(surl.removeprefix("file://localhost"))
    assert path.is_relative_to(site.storage)
    return path


def test_a_job_reads_its_inputs_and_its_outputs_and_log_lie_on_the_storage(site: Site, pilots: Pilots) -> None:
    command = urllib.parse.quote("cat a.txt b.txt > sum.txt; echo said; echo moaned >&2")
    job = site.offer(
        "run_command",
        f"""-p "{command}" -i "['a.txt', 'b.txt']" -o "{{'sum.txt': 'user.jdoe.sum.1'}}" """,
        inputs={"a.txt": b"one\n", "b.txt": b"two\n" * 500_000},
        outputs=("user.jdoe.sum.1",),
    )
    assert pilots.run() == 0
    final = site.wait_final(job)
    assert final["job_status"] == "finished", final
    assert site.states(job) == ["starting", "running", "finished"]
    assert (final["fence"], final["job_secret"], final["attempt_nr"]) == (7, f"secret-{job}", 1)
    assert final["trans_exit_code"] == 0
    report = json.loads(final["job_output_report"])
    assert set(report) == {"user.jdoe.sum.1", f"log.{job}.tgz"}
    for lfn, entry in report.items():
        content = stored(site, entry["surl"]).read_bytes()
        assert (entry["fsize"], entry["adler32"]) == (len(content), f"{zlib.adler32(content):08x}"), lfn
    assert stored(site, report["user.jdoe.sum.1"]["surl"]).read_bytes() == b"one\n" + b"two\n" * 500_000
    assert report[f"log.{job}.tgz"]["guid"] == "11111111-2222-3333-4444-555555555555"
    assert uuid.UUID(report["user.jdoe.sum.1"]["guid"]).version == 4
    with tarfile.open(stored(site, report[f"log.{job}.tgz"]["surl"])) as tar:
        members = {Path(m.name).name: (tar.extractfile(m) or tar).read().decode() for m in tar}  # type: ignore[union-attr]
    assert members["payload.stdout"].endswith("said\n")
    assert members["payload.stderr"] == "moaned\n"
    assert "payload.ended" in members["pilot.log"]
    assert not any("secret" in text for text in members.values())
    assert pilots.leftovers() == []


def test_a_payload_finds_its_users_secrets_while_it_runs_and_nobody_later(site: Site, pilots: Pilots) -> None:
    command = urllib.parse.quote("stat -c %a panda_secrets.json > out; cat panda_secrets.json >> out")
    job = site.offer(
        "run_command",
        f"""-p "{command}" -o "{{'out': 'user.jdoe.1'}}" """,
        outputs=("user.jdoe.1",),
        secrets='{"a": "xyzzy"}',
    )
    assert pilots.run("--keep", "--max-jobs", "1") == 0
    final = site.wait_final(job)
    assert final["job_status"] == "finished", final
    report = json.loads(final["job_output_report"])
    assert stored(site, report["user.jdoe.1"]["surl"]).read_text() == '600\n{"a": "xyzzy"}'
    assert b"xyzzy" not in stored(site, report[f"log.{job}.tgz"]["surl"]).read_bytes()
    assert pilots.leftovers() and not any(path.name == "panda_secrets.json" for path in pilots.work.rglob("*"))


PRINTS = r"""
cat panda_secrets.json; grep -o 'hunter2[^"]*' panda_secrets.json >&2
echo '{"failure": {"kind": "no_sandbox", "text": "hunter2-hunter2"}, "nEvents": 0}' > %s
exit 3
"""


@pytest.mark.parametrize("own_words", [False, True], ids=["stderr", "report"])
@pytest.mark.parametrize("carries_its_own", [False, True], ids=["program", "transform"])
def test_secrets_that_a_payload_prints_are_masked_before_anybody_gets_them(
    site: Site, pilots: Pilots, own_words: bool, carries_its_own: bool
) -> None:
    script = PRINTS % ("jobReport.json" if own_words else "/dev/null")
    secrets = json.dumps({"word": "hunter2-hunter2"})
    if carries_its_own:
        job = site.offer("run_command", f'-p "{urllib.parse.quote(script)}"', secrets=secrets)
    else:
        job = site.offer(f"#!/bin/sh\n{script}", secrets=secrets)
    assert pilots.run() == 0
    final = site.wait_final(job)
    assert final["job_status"] == "failed" and "hunter2-hunter2" not in json.dumps(final)
    assert (final["pilot_error_diag"] if own_words else final["exe_error_diag"]) == "***"
    report = json.loads(final["job_output_report"])
    with tarfile.open(stored(site, report[f"log.{job}.tgz"]["surl"])) as tar:
        members = {Path(m.name).name: (tar.extractfile(m) or tar).read().decode() for m in tar}  # type: ignore[union-attr]
    assert '{"word": "***"}' in members["payload.stdout"] and members["payload.stderr"].startswith("***\n")
    assert not any("hunter2-hunter2" in text for text in members.values())


def test_events_are_counted_as_the_payload_reports_them(site: Site, pilots: Pilots) -> None:
    job = site.offer("zmumu_generate", "--max-events 1000 --seed 5 --output ev.npy", outputs=("ev.npy",))
    assert pilots.run() == 0
    final = site.wait_final(job)
    assert final["job_status"] == "finished", final
    assert final["n_events"] == 1000
    assert json.loads(final["job_output_report"])["ev.npy"]["nevents"] == 1000
    assert json.loads(final["job_output_report"])[f"log.{job}.tgz"]["nevents"] is None
    assert final["max_rss"] > 5_000
    assert final["start_time"] < final["end_time"]
    assert "." in final["end_time"], "a job of less than a second has a length"


def test_one_pilot_runs_job_after_job_and_ends_when_idle(site: Site, pilots: Pilots) -> None:
    jobs = [site.offer("run_command", f"-- echo '>' out.{number}", outputs=(f"out.{number}",)) for number in range(3)]
    assert pilots.run("--idle-exit", "0.3") == 0
    assert [site.wait_final(job)["job_status"] for job in jobs] == ["finished"] * 3


def test_the_payload_does_not_see_the_pilots_token(site: Site, pilots: Pilots) -> None:
    job = site.offer("run_command", "-- env '>' env.txt", outputs=("env.txt",))
    assert pilots.run() == 0
    surl = json.loads(site.wait_final(job)["job_output_report"])["env.txt"]["surl"]
    seen = stored(site, surl).read_text()
    assert "JEDI_" not in seen and TOKEN not in seen
    assert f"PandaID={job}" in seen


def test_a_job_without_storage_named_uses_the_queues_own(site: Site, pilots: Pilots) -> None:
    job = site.offer("run_command", "-- touch empty", outputs=("empty",), ddmEndPointOut="")
    assert pilots.run() == 0
    assert site.wait_final(job)["job_status"] == "finished"


def test_the_slot_says_what_it_offers(site: Site, pilots: Pilots) -> None:
    assert pilots.run("--idle-exit", "0", "--memory", "1500", "--label", "user", "--worker-id", "42") == 0
    asked = site.acquired[0]
    assert asked.pop("disk_space") > 0
    assert asked.pop("node")
    assert asked == {
        "site_name": "Q",
        "memory": 1500,
        "prod_source_label": "user",
        "worker_id": 42,
        "n_jobs": 1,
        "with_secret": True,
    }


def test_keep_leaves_the_work_folder(site: Site, pilots: Pilots) -> None:
    site.offer("run_command", "-- true")
    assert pilots.run("--max-jobs", "1", "--keep") == 0
    assert len(pilots.leftovers()) == 1
