"""Every way in which a job can go wrong: its own code, a sentence with the numbers, and the slot is free again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tasks_app.domain.job_errors import STORAGE_AWAY
from tasks_app.worker_node.pilot.errors import Code, JobFailedError
from tasks_app.worker_node.pilot.folder_away import EMPTY
from tasks_app.worker_node.pilot.job import Input, Output
from tasks_app.worker_node.pilot.stagein import Readable, stage_in
from tasks_app.worker_node.pilot.stageout import written
from tests.lacking import lacking
from tests.tasks_app.worker_node.running import TELL, Pilots, address, wait_gone
from tests.tasks_app.worker_node.site import Site

EATS_MEMORY = TELL + 'food = b"x" * 400_000_000\nsignal.pause()\n'
CHILD_EATS_MEMORY = (
    TELL
    + """
subprocess.run([sys.executable, "-c", "import signal; food = b'x' * 400_000_000; signal.pause()"])
"""
)
EATS_MEMORY_BY_A_FILE = (
    TELL
    + """
file = os.memfd_create("food")
for _ in range(100): os.write(file, b"x" * 4_000_000)
signal.pause()
"""
)
NEVER_ENDS = (
    TELL
    + """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "1000"], start_new_session=True)  # which ignores SIGTERM as well
tell(f"pid/{os.getpid()}/{child.pid}")
while True: signal.pause()
"""
)
FILLS_THE_DISK = TELL + 'open("big", "wb").write(b"x" * 40_000_000)\nsignal.pause()\n'
FILLS_BY_A_DELETED_FILE = (
    TELL
    + """
with open("big", "wb") as file:
    os.unlink("big")
    file.write(b"x" * 40_000_000)
    file.flush()
    signal.pause()
"""
)
FILLS_AND_ENDS = TELL + 'open("big", "wb").write(b"x" * 40_000_000)\n'
FILLS_BELOW_LONG_PATHS = (
    TELL
    + """
for _ in range(41): os.mkdir("d" * 100); os.chdir("d" * 100)
open("big", "wb").write(b"x" * 40_000_000)
"""
)
EXITS_65 = TELL + 'print("The input a.json is corrupt at line 3", file=sys.stderr)\nsys.exit(65)\n'
KILLS_ITSELF = TELL + "os.kill(os.getpid(), signal.SIGSEGV)\n"
WRITES_ONE_OF_TWO = TELL + 'open("one", "w").write("1")\n'
LINKS_ITS_OUTPUT = TELL + 'os.symlink("/etc/hostname", "out")\n'
LEAVES_A_DAEMON = (
    TELL
    + """
child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
tell(f"pid/{child.pid}")
open("out", "w").write("done")
"""
)


def fail(site: Site, pilots: Pilots, program: str, parameters: str = "", **job: Any) -> dict[str, Any]:
    """Run a job that fails, and another that does not; returns the report of the first."""
    bad = site.offer(program, parameters, **job)
    good = site.offer("run_command", "-- true", outFiles="", logFile="", ddmEndPointOut="")
    assert pilots.run("--max-jobs", "2") == 0
    final = site.wait_final(bad)
    assert final["job_status"] == "failed"
    assert site.wait_final(good)["job_status"] == "finished", "the slot was not free again"
    assert pilots.leftovers() == []
    return final


def log_of(final: dict[str, Any]) -> dict[str, str]:
    """The files in the stored log of a failed job; it is the only thing stored."""
    [entry] = json.loads(final["job_output_report"]).values()
    with tarfile.open(entry["surl"].removeprefix("file://localhost")) as tar:
        return {Path(m.name).name: tar.extractfile(m).read().decode() for m in tar}  # type: ignore[union-attr]


@pytest.mark.parametrize("program", [EATS_MEMORY, CHILD_EATS_MEMORY, EATS_MEMORY_BY_A_FILE])
def test_a_payload_that_eats_memory_is_killed(site: Site, pilots: Pilots, program: str) -> None:
    final = fail(site, pilots, program, minRamCount=135)
    assert final["pilot_error_code"] == 1235
    assert "its limit is 150 MB" in final["pilot_error_diag"]
    assert final["max_rss"] > 150 * 1024
    assert "job.failed" in log_of(final)["pilot.log"]


def test_a_payload_that_never_ends_is_killed(site: Site, pilots: Pilots) -> None:
    final = fail(site, pilots, NEVER_ENDS, address(site), maxWalltime=1)
    assert final["pilot_error_code"] == 1213
    assert "its limit is 1 s of wall time" in final["pilot_error_diag"]
    for pid in site.wait_call("/told/pid/").split("/")[3:]:
        wait_gone(int(pid))


@pytest.mark.parametrize("program", [FILLS_THE_DISK, FILLS_BY_A_DELETED_FILE, FILLS_AND_ENDS, FILLS_BELOW_LONG_PATHS])
def test_a_payload_that_fills_the_disk_fails(site: Site, pilots: Pilots, program: str) -> None:
    final = fail(site, pilots, program, maxDiskCount=10)
    assert final["pilot_error_code"] == 1104
    assert "its limit is 10 MB" in final["pilot_error_diag"]


def test_a_job_may_fill_what_its_queue_gives_where_its_task_stated_less(site: Site, pilots: Pilots) -> None:
    jobs = [site.offer(FILLS_AND_ENDS, maxDiskCount=10, maxwdir=mb) for mb in (100, 30)]
    assert pilots.run("--max-jobs", "2") == 0
    fits, over = (site.wait_final(job) for job in jobs)
    assert (fits["job_status"], over["job_status"], over["pilot_error_code"]) == ("finished", "failed", 1104)
    assert "its limit is 30 MB, the limit of the queue (maxwdir)" in over["pilot_error_diag"]


def test_an_exit_code_is_reported_with_the_payloads_last_words(site: Site, pilots: Pilots) -> None:
    final = fail(site, pilots, EXITS_65)
    assert (final["pilot_error_code"], final["trans_exit_code"], final["exe_error_code"]) == (1305, 65, 65)
    assert final["pilot_error_diag"] == "The payload ended with exit code 65"
    assert final["exe_error_diag"] == "The input a.json is corrupt at line 3"
    assert log_of(final)["payload.stderr"] == "The input a.json is corrupt at line 3\n"


def test_a_payload_that_crashes_is_reported_with_its_signal(site: Site, pilots: Pilots) -> None:
    final = fail(site, pilots, KILLS_ITSELF)
    assert (final["pilot_error_code"], final["trans_exit_code"]) == (1305, 139)
    assert "SIGSEGV" in final["pilot_error_diag"]


def test_a_missing_output_fails_the_job_and_nothing_but_the_log_is_stored(site: Site, pilots: Pilots) -> None:
    final = fail(site, pilots, WRITES_ONE_OF_TWO, outputs=("one", "two"))
    assert final["pilot_error_code"] == 1165
    assert "1 of its 2 outputs; missing: two" in final["pilot_error_diag"]
    log_of(final)
    assert not list(site.storage.rglob("one"))


def test_a_storage_whose_folder_is_away_fails_the_job_and_is_not_made_anew(site: Site, pilots: Pilots) -> None:
    site.storage.rmdir()
    final = fail(site, pilots, WRITES_ONE_OF_TWO, outputs=("one",))
    assert final["pilot_error_code"] == 1137
    assert (
        f"Output one could not be stored: the folder of its storage ({site.storage}) is not there"
        in (final["pilot_error_diag"])
    )
    assert not site.storage.exists()


def test_a_link_is_not_an_output(site: Site, pilots: Pilots) -> None:
    final = fail(site, pilots, LINKS_ITS_OUTPUT, outputs=("out",))
    assert final["pilot_error_code"] == 1165
    assert "wrote 0 of its 1 output; missing: out (it is a link)" in final["pilot_error_diag"]


def test_an_input_with_other_content_is_refused_before_the_payload_runs(site: Site, pilots: Pilots) -> None:
    final = fail(site, pilots, EXITS_65, inputs={"a.json": b"right"}, checksum="ad:00000001")
    assert final["pilot_error_code"] == 1171
    assert "00000001 was expected" in final["pilot_error_diag"]
    assert "trans_exit_code" not in final


@pytest.mark.parametrize("how", ["address", "link in the storage", "storage and back"])
def test_a_file_of_the_site_that_is_in_no_storage_is_no_input(
    site: Site, pilots: Pilots, tmp_path: Path, how: str
) -> None:
    """Whatever the server was made to believe: the pilot may have rights that the job's owner has not."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "secret_key").write_bytes(b"the key")
    link = site.storage / "link"
    link.symlink_to(home / "secret_key")
    url = {
        "address": f"file://{home}/secret_key",
        "link in the storage": f"file://localhost{link}",
        "storage and back": f"file://localhost{site.storage}/../home/secret_key",
    }[how]
    job = site.offer(
        "run_command", "-- cp a out", inputs={"a": b"7 bytes"}, outputs=("out",), surlsIn=[url], checksum="NULL"
    )
    pilots.run("--max-jobs", "1", "--hidden", str(home))
    final = site.wait_final(job)
    assert (final["job_status"], final["pilot_error_code"]) == ("failed", 1099), final
    assert "is in the site's own folder, outside any storage" in final["pilot_error_diag"]


def test_what_lies_in_a_storage_within_the_hidden_folder_is_an_input(
    site: Site, pilots: Pilots, tmp_path: Path
) -> None:
    job = site.offer("run_command", "-- cp a out", inputs={"a": b"x"}, outputs=("out",))
    assert pilots.run("--max-jobs", "1", "--hidden", str(tmp_path)) == 0
    assert site.wait_final(job)["job_status"] == "finished"


def test_nothing_is_said_of_the_content_of_a_file_that_nobody_stored(
    site: Site, pilots: Pilots, tmp_path: Path
) -> None:
    (tmp_path / "other").write_bytes(b"12345")
    url = f"file://{tmp_path}/other"
    final = fail(site, pilots, EXITS_65, inputs={"a": b"right!"}, surlsIn=[url])
    assert final["pilot_error_code"] == 1099
    assert "no storage has a copy" in final["pilot_error_diag"]
    assert "5" not in final["pilot_error_diag"]


def test_an_input_of_another_size_is_refused(site: Site, pilots: Pilots) -> None:
    final = fail(site, pilots, EXITS_65, inputs={"a.json": b"right"}, fsize="6")
    assert final["pilot_error_code"] == 1099
    assert final["pilot_error_diag"].startswith(f"Input a.json has 5 bytes, 6 were expected ({site.storage}/")


def test_an_input_that_is_not_there(site: Site, pilots: Pilots) -> None:
    final = fail(site, pilots, EXITS_65, inputs={"a": b""}, surlsIn=[f"file://localhost{site.storage}/lost"])
    assert final["pilot_error_code"] == 1331


def test_an_input_without_an_address(site: Site, pilots: Pilots) -> None:
    final = fail(site, pilots, EXITS_65, inputs={"a": b""}, surlsIn=[None])
    said = "Input a has no address: the file is missing in the storage"
    assert (final["pilot_error_code"], final["pilot_error_diag"]) == (1099, said)


def test_a_transform_that_the_server_does_not_have(site: Site, pilots: Pilots) -> None:
    final = fail(site, pilots, "no_such_transform")
    assert final["pilot_error_code"] == 1149
    assert "404" in final["pilot_error_diag"]


@pytest.mark.parametrize(
    "name", ["http://127.0.0.1:1/trf/user/x", "http://[x/trf/user/x", "../secret", "a/b", ".hidden", "x?y"]
)
def test_a_transform_from_elsewhere_is_refused(site: Site, pilots: Pilots, name: str) -> None:
    assert fail(site, pilots, name)["pilot_error_code"] == 1149


def test_a_transform_by_its_whole_address(site: Site, pilots: Pilots) -> None:
    job = site.offer(f"{site.url}/trf/user/run_command", "-- true")
    assert pilots.run() == 0
    assert site.wait_final(job)["job_status"] == "finished"


def test_a_transform_that_is_an_input_of_the_job(site: Site, pilots: Pilots) -> None:
    job = site.offer("mine", "", inputs={"mine": b"#!/bin/sh\necho > out\n"}, outputs=("out",))
    assert pilots.run() == 0
    assert site.wait_final(job)["job_status"] == "finished"


def test_quotes_that_do_not_close(site: Site, pilots: Pilots) -> None:
    assert fail(site, pilots, "run_command", "-- 'oh")["pilot_error_code"] == 1349


def test_a_program_that_cannot_be_run(site: Site, pilots: Pilots) -> None:
    final = fail(site, pilots, "#!/no/such/interpreter\n")
    assert final["pilot_error_code"] == 1305


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"scopeOut": "../../etc"}, 1110),
        ({"scopeOut": "a..b"}, 1110),
        ({"ddmEndPointOut": "NOWHERE,NOWHERE"}, 1133),
        ({"ddmEndPointOut": "TAPE,SE"}, 1313),
        ({"outFiles": "../out,log.tgz", "logFile": "log.tgz"}, 1110),
        ({"surlsIn": ["file:///x"]}, 1110),
    ],
)
def test_outputs_never_leave_the_storage(site: Site, pilots: Pilots, change: dict[str, Any], code: int) -> None:
    before = sorted(site.storage.parent.iterdir())
    final = fail(site, pilots, "run_command", "-- touch out", outputs=("out",), **change)
    assert final["pilot_error_code"] == code
    assert sorted(set(site.storage.parent.iterdir()) - {pilots.work}) == before
    assert not list(site.storage.rglob("out"))


def test_a_storage_that_cannot_be_written_fails_the_job(site: Site, pilots: Pilots) -> None:
    (site.storage / "user").write_text("a file where a folder should be")
    final = fail(site, pilots, "run_command", "-- touch out", outputs=("out",))
    assert final["pilot_error_code"] == 1137
    assert json.loads(final["job_output_report"]) == {}


def test_nothing_is_written_below_a_mount_point_of_a_storage_in_which_files_were_seen(
    site: Site, pilots: Pilots
) -> None:
    site.storage_holds_files = True
    final = fail(site, pilots, "run_command", "-- touch out", outputs=("out",))
    assert final["pilot_error_code"] == 1137
    assert "is empty, although files are registered there" in final["pilot_error_diag"]
    assert not list(site.storage.iterdir()), "not even its log"
    (site.storage / "user").mkdir()
    site.offer("run_command", "-- touch out", outputs=("out",))
    assert pilots.run() == 0 and list(site.storage.rglob("out"))


def test_what_a_payload_leaves_in_the_background_is_killed(site: Site, pilots: Pilots) -> None:
    job = site.offer(LEAVES_A_DAEMON, address(site), outputs=("out",))
    assert pilots.run() == 0
    assert site.wait_final(job)["job_status"] == "finished"
    wait_gone(int(site.wait_call("/told/pid/").rpartition("/")[2]))


def test_a_job_ends_well_without_an_output_that_it_need_not_make(site: Site, pilots: Pilots) -> None:
    program = "#!/bin/sh\necho x > must\n"
    job = site.offer(program, outputs=("may", "must"), allowNoOutput="may")
    strict = site.offer(program, outputs=("may", "must"))
    assert pilots.run() == 0 and pilots.run() == 0
    final = site.wait_final(job)
    assert final["job_status"] == "finished"
    assert {"may", "must"} & json.loads(final["job_output_report"]).keys() == {"must"}
    assert site.wait_final(strict)["job_status"] == "failed"


def test_a_handful_of_missing_outputs_is_named_and_the_rest_counted(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("x")

    def said(*names: str) -> str:
        with pytest.raises(JobFailedError) as caught:
            written([Output(name, "user.ada", "") for name in names], tmp_path)
        return str(caught.value)

    assert "wrote 0 of its 1 output; missing: a" in said("a")
    (tmp_path / "deep").mkdir()
    os.mkfifo(tmp_path / "pipe")
    assert "missing: deep (it is a folder), a, pipe (it is a named pipe)" in said("deep", "a", "pipe")
    assert "wrote 1 of its 6 outputs; missing: a, b, c, d, e" in said("there", *"abcde")
    optional = [Output(name, "user.ada", "", optional=True) for name in ("there", "a")]
    assert [file.lfn for file in written(optional, tmp_path)] == ["there"]
    assert said("there", *"abcdefg").endswith("wrote 1 of its 8 outputs; missing: a, b, c, d, e and 2 more")


def test_all_inputs_that_are_not_there_are_named(tmp_path: Path) -> None:
    storage, folder = tmp_path / "storage", tmp_path / "work"
    storage.mkdir()
    folder.mkdir()
    (storage / "a").write_bytes(b"x")
    inputs = [Input(lfn, f"file://localhost{storage}/{lfn}", None, None) for lfn in ("a", "b", "c", "d")]
    (storage / "c").write_bytes(b"x")
    with pytest.raises(JobFailedError) as failed:
        stage_in(inputs, folder, lambda: None, Readable([], lambda: [storage]))
    assert failed.value.failure.diag.startswith("Input b is not in the storage (file://localhost")
    assert failed.value.failure.diag.endswith("; also not there: d")
    assert failed.value.failure.corrupted == ("b", "d")


@pytest.mark.parametrize("kind", ["none", "empty", "file"])
def test_a_storage_that_is_away_is_told_from_a_file_that_is_missing(tmp_path: Path, kind: str) -> None:
    storage, folder = tmp_path / "storage", tmp_path / "work"
    folder.mkdir()
    if kind == "empty":
        storage.mkdir()
    elif kind == "file":
        storage.touch()
    how = EMPTY if kind == "empty" else "is not there"
    one = Input("a", f"file://localhost{storage}/a", None, None)
    with pytest.raises(JobFailedError) as failed:
        stage_in([one], folder, lambda: None, Readable([], lambda: [storage]))
    assert (failed.value.failure.code, failed.value.failure.corrupted) == (Code.STAGE_IN_FAILED, ())
    assert failed.value.failure.diag == f"{STORAGE_AWAY}{storage} {how}. Input a could not be read"


MOUNTED = """
import subprocess, sys
from pathlib import Path
from tasks_app.worker_node.pilot.folder_away import why_away
disk = Path(sys.argv[1])
(disk / "a").touch()
print([why_away(disk, holds_files=True)])
subprocess.run(["umount", disk], check=True)
print([why_away(disk, holds_files=True), why_away(disk, holds_files=False)])
"""


def test_a_disk_that_is_not_mounted_leaves_an_empty_folder(tmp_path: Path) -> None:
    small = f'mount -t tmpfs -o size=1m none "$1" && exec {sys.executable} -c "$0" "$1"'
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", small, MOUNTED, str(tmp_path)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
    )
    if done.stderr.startswith(("unshare:", "mount:")):
        lacking(f"this machine lets nobody mount a small storage: {done.stderr}")
    assert done.stdout.split("\n")[:2] == ["['']", f"['{EMPTY}', '']"], done.stderr
