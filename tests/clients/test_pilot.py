"""PanDA's own pilot, as it comes from the package index, in the slots of an installation.

It kills processes of its user all over the machine unless it is held: see `tasks_app/worker_node/submitters/panda_pilots.py`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tarfile
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import pytest

from tasks_app.worker_node.submitters.panda_pilots import CannotIsolateError, check
from tests.clients import event_pilots
from tests.installation import ROOT, Site, wait_for
from tests.lacking import lacking

pytestmark = pytest.mark.timeout(900)
SLOTS = 5
LIMIT_S = 400
ENDED = {"finished", "failed", "cancelled", "closed"}
MAKE_USER = "from django.contrib.auth.models import User; User.objects.get_or_create(username='ada')"
SECRET = "from tasks_app.submission.user_secrets import set_secret; set_secret('ada', 'KEY', 's3cret')"
LONGER = "from brokerage_app.models import Queue; Queue.objects.update(data={'timefloor': 60})"
"""Makes pilots run several jobs, one after the other."""
THIEF = r"""
import glob, json, os, sys
home, pid = sys.argv[1], int(sys.argv[2])
got = {}
for name in ("secret_key", "run", "run/DATABASE_URL", "work", "log", "postgres"):
    got[name] = os.path.exists(home + "/" + name)
paths = glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline")
texts = [open(path, "rb").read() for path in paths if os.access(path, os.R_OK)]
got["secrets of processes"] = any(b"postgresql:" + b"//" in text or b"A_PASS" + b"WORD" in text for text in texts)
got["others' payloads"] = any(b"sleep" + b" 3000" in text for text in texts)
got["others' folders"] = [path for path in glob.glob("/job/../*") + glob.glob("/tmp/w-*") if "w-" in path]
got["files of root"] = bool(glob.glob(os.path.join("/", "root", "*", "*token*"))) or os.access("/etc/shadow", os.R_OK)
got["the storage"] = os.path.exists("/inputs")
others = os.path.join("/proc/[0-9]*", "root", "job", "token")
got["the token"] = glob.glob("/job/token") + glob.glob("/job/*/token") + glob.glob(others)
got["variables of the pilot"] = [name for name in os.environ if "OIDC" in name or "JEDI" in name]
try:
    os.kill(pid, 0)
    got["a process"] = True
except OSError:
    got["a process"] = False
print(json.dumps(got))
"""


@pytest.fixture(scope="module")
def pilot_source(panda_pilot: Path) -> Path:
    try:
        check(panda_pilot)
    except CannotIsolateError as exc:
        lacking(str(exc))
    return panda_pilot


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, pilot_source: Path) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("site")
    home.parent.chmod(0o755)
    home.chmod(0o755)
    settings = {"JEDI_PILOT": "panda", "JEDI_PANDA_PILOT_DIR": str(pilot_source), "JEDI_PILOT_HEARTBEAT_S": "3"}
    inputs = tmp_path_factory.mktemp("inputs")
    inputs.chmod(0o755)
    settings |= {"JEDI_PAYLOAD_READS": str(inputs), "A_PASSWORD": "swordfish"}
    site = Site(home, "--no-workers", **settings)
    try:
        wait_for(lambda: site.url, "the site's start")
        yield site
    finally:
        site.stop()


def task(name: str, command: str, read: str = "", **more: Any) -> dict[str, Any]:
    """A task of the shape that prun submits; what the command writes to out.txt is its output."""
    full = f"user.ada.{name}"
    lfn = f"{full}.$JEDITASKID._${{SN/P}}.txt"
    items: list[dict[str, Any]] = [{"type": "constant", "value": f'-p "{quote(command)}"'}]
    if read:
        items.append({"type": "template", "param_type": "input", "value": '-i "${IN/T}"', "dataset": read})
    else:
        more = {"noInput": True, "nEvents": 1, "nEventsPerJob": 1, **more}
    made = {"dataset": f"{full}/", "container": f"{full}/", "hidden": True}
    items.append({"type": "constant", "value": f"-o \"{{'out.txt': '{lfn}'}}\""})
    items.append({"type": "template", "param_type": "output", "value": lfn, **made})
    log = {"type": "template", "param_type": "log", "value": f"{full}.${{SN}}.log.tgz", "dataset": f"{full}.log"}
    return {
        "taskName": full,
        "userName": "ada",
        "vo": "lab",
        "prodSourceLabel": "user",
        "taskType": "anal",
        "processingType": "test",
        "skipScout": True,
        "transPath": "run_command",
        "maxAttempt": 1,
        "maxFailure": 1,
        "log": log,
        "jobParameters": items,
        **more,
    }


def token_of(site: Site, *whose: str) -> str:
    kept = site.home / f"token-{whose[0]}"
    site.manage("token", *whose, "--file", str(kept))
    return kept.read_text().strip()


def post(site: Site, token: str, path: str, body: dict[str, Any]) -> Any:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(site.url + path, json.dumps(body).encode(), headers)) as answer:
        return json.load(answer)


def jobs(site: Site) -> dict[str, list[tuple[Any, ...]]]:
    """(state, error code of the pilot, exit code of the payload, without a secret) by name of the task."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for name, *row in site.query(
        """SELECT t.taskname, j.jobstatus, j.piloterrorcode, j.transexitcode, j.secret_hash IS NULL
             FROM jobs j JOIN jedi_tasks t USING (jeditaskid) ORDER BY j.pandaid"""
    ):
        found.setdefault(name.removeprefix("user.ada."), []).append(tuple(row))
    return found


def files(site: Site, beginning: str) -> list[Path]:
    """Files of datasets whose names begin so."""
    rows = site.query("SELECT d.name, f.url FROM catalogue_files f JOIN catalogue_datasets d ON d.id = f.dataset_id")
    return [Path(url.removeprefix("file://localhost")) for name, url in rows if name.startswith(beginning)]


@pytest.fixture
def pilots(site: Site) -> Iterator[Callable[[], psutil.Process]]:
    """Starts the local workers. All processes below them are gone after the test, however it ended."""
    started: list[psutil.Process] = []

    def start() -> psutil.Process:
        secret = {"JEDI_SERVER_URL": site.url, "DATABASE_URL": site.database}
        log = (site.home / "workers.log").open("w")
        command = [sys.executable, "manage.py", "local_workers", "--slots", str(SLOTS)]
        process = psutil.Popen(command, cwd=ROOT, env=site.environment | secret, stdout=log, stderr=log)
        log.close()
        started.append(process)
        return process

    yield start
    for process in started:
        with contextlib.suppress(psutil.NoSuchProcess):
            below = process.children(recursive=True)
            process.kill()
            psutil.wait_procs([process, *below], 20)


def test_jobs_of_every_fate_end_as_they_should_and_nothing_is_left_of_their_pilots(
    site: Site, pilots: Callable[[], psutil.Process]
) -> None:
    """All at once: the pilot takes two minutes to report a failure."""
    site.manage("local_site", "--slots", str(SLOTS))
    site.manage("shell", "-c", f"{MAKE_USER}; {SECRET}; {LONGER}")
    token = token_of(site, "make", "ada")
    inputs = Path(site.environment["JEDI_PAYLOAD_READS"])
    for number in (1, 2):
        (inputs / f"n{number}.txt").write_text(f"{number}\n")
    site.manage("register_dataset", "user.ada.numbers", str(inputs / "n1.txt"), str(inputs / "n2.txt"))
    (inputs / "changed.txt").write_text("1\n")
    site.manage("register_dataset", "user.ada.older", str(inputs / "changed.txt"))
    (inputs / "changed.txt").write_text("2\n")
    thief = f"cat > thief.py <<'END'\n{THIEF}\nEND\npython3 thief.py {site.home} {os.getpid()} > out.txt"
    wanted: dict[str, tuple[str, dict[str, Any]]] = {
        "good": ("echo fine > out.txt", {}),
        "secret": ("grep -q s3cret panda_secrets.json && echo read > out.txt", {"useSecrets": True}),
        "fails": ("grep s3cret panda_secrets.json; grep s3cret panda_secrets.json >&2 && exit 3", {"useSecrets": True}),
        "nothing": ("true", {}),
        "endless": ("sleep 3000", {"useSecrets": True}),
        "sums": ("cat $(echo %IN | tr , ' ') > out.txt", {"read": "user.ada.numbers", "nFilesPerJob": 2}),
        "changed": ("cat %IN > out.txt", {"read": "user.ada.older", "nFilesPerJob": 1}),
        "thief": (thief, {}),
        "several": ("echo more > out.txt", {"nEvents": 3, "taskPriority": 10}),
    }
    numbers = {
        name: post(site, token, "/api/v2/tasks/", task(name, command, **more))["id"]
        for name, (command, more) in wanted.items()
    }
    wait_for(lambda: sum(map(len, jobs(site).values())) == 11, "the jobs of all tasks", LIMIT_S)
    workers = pilots()
    wait_for(lambda: jobs(site)["endless"][0][0] == "running", "the start of the endless job", LIMIT_S)
    assert post(site, token, "/api/v1/task/kill", {"task_id": numbers["endless"]})["success"]
    wait_for(lambda: {row[0] for rows in jobs(site).values() for row in rows} <= ENDED, "the end of all jobs", LIMIT_S)
    found = jobs(site)
    assert {row[-1] for rows in found.values() for row in rows} == {True}, "PanDA's pilots carry no secret"
    assert {name: [row[:2] for row in rows] for name, rows in found.items()} == {
        "good": [("finished", 0)],
        "secret": [("finished", 0)],
        "fails": [("failed", 1305)],
        "nothing": [("failed", 1165)],
        "endless": [("cancelled", 1144)],
        "sums": [("finished", 0)],
        "changed": [("failed", 1305)],
        "thief": [("finished", 0)],
        "several": [("finished", 0)] * 3,
    }
    assert found["fails"][0][2] == "3", "the payload's own code is kept"
    ((words,),) = site.query("SELECT exeerrordiag FROM jobs WHERE jobname LIKE '%fails%'")
    assert "***" in words and "s3cret" not in words
    ((words,),) = site.query("SELECT exeerrordiag FROM jobs WHERE jobname LIKE '%changed%'")
    assert "Input changed.txt has the adler32 checksum" in words
    nodes = site.query("SELECT pilotid, count(*) FROM jobs GROUP BY 1")
    assert nodes == [("unknown|PR|3.7.0.36", 11)]
    (stolen,) = files(site, "user.ada.thief.1")
    got = json.loads(stolen.read_text())
    assert len(got) == 14 and {name: what for name, what in got.items() if what} == {}
    for name, content, count in (
        ("good", "fine\n", 1),
        ("sums", "1\n2\n", 1),
        ("several", "more\n", 3),
        ("nothing", "", 0),
    ):
        assert [path.read_text() for path in files(site, f"user.ada.{name}.1")] == [content] * count
        logs = files(site, f"user.ada.{name}.log")
        assert len(logs) == count or (count == 0 and len(logs) <= 1)
        assert all(tarfile.is_tarfile(path) for path in logs)
    # Of a job that fails that pilot waits 55 seconds for the log, and on a busy machine reports its end without it.
    failed = {
        name: log[0]
        for name in ("fails", "nothing", "changed", "endless")
        if (log := files(site, f"user.ada.{name}.log"))
    }
    assert failed, "no failed job has left its log"
    for name in ("secret", *(failed.keys() & {"fails", "endless"})):
        with tarfile.open(files(site, f"user.ada.{name}.log")[0]) as log:
            packed = [member.rpartition("/")[2] for member in log.getnames()]
            said = [log.extractfile(one).read() for one in log if "/payload.std" in one.name]  # type: ignore[union-attr]
        assert len(said) == 2 and not any(b"s3cret" in one for one in said) and (b"***" in said[0] or name != "fails")
        assert "payload.stdout" in packed and "panda_secrets.json" not in packed, name
    below = [workers, *workers.children(recursive=True)]
    assert len(below) > SLOTS
    workers.terminate()
    _, left = psutil.wait_procs(below, 60)
    assert not left
    assert not list((site.home / "work").glob("w-*")), "folders of pilots are removed"


def test_a_task_of_events_is_processed_tried_again_and_merged(site: Site, pilot_source: Path, tmp_path: Path) -> None:
    """Two of its seven ranges fail once: another consumer processes them. PanDA's pilot runs both, and the merge job."""
    site.manage("local_site", "--slots", "1")
    site.manage("shell", "-c", f"{MAKE_USER}; {event_pilots.MAKE_QUEUE}")
    inputs = Path(site.environment["JEDI_PAYLOAD_READS"])
    text = "".join(f"{number}\n" for number in range(1, 26))
    (inputs / "events.txt").write_text(text)
    site.manage("register_dataset", "user.ada.events", str(inputs / "events.txt"), "--events", "25")
    (flags := tmp_path / "flags").mkdir()
    once = f"case $FIRST_EVENT in 5|13) mkdir {flags}/$FIRST_EVENT && exit 3;; esac"
    command = f'{once}; sed -n "${{FIRST_EVENT}},${{LAST_EVENT}}p" %IN > out.txt'
    more = {"nEventsPerWorker": 4, "nEventsPerInputFile": 25, "nFilesPerJob": 1, "site": event_pilots.QUEUE}
    token = token_of(site, "make", "ada")
    made = post(site, token, "/api/v2/tasks/", task("ranges", command, "user.ada.events", **more))["id"]
    pilot_token = token_of(site, "pilot", "--site", event_pilots.QUEUE)
    waiting = "SELECT pandaid FROM jobs WHERE jeditaskid = %s AND jobstatus = 'activated'"
    ended = "SELECT 1 FROM jedi_tasks WHERE jeditaskid = %s AND status IN ('done', 'finished', 'failed', 'broken')"
    brought: list[str] = []
    for turn in range(3):
        wait_for(lambda: site.query(waiting, made), f"job {turn + 1} of the task", LIMIT_S)
        pilot = event_pilots.start(site, pilot_source, tmp_path / f"pilot-{turn}", pilot_token)
        try:
            wait_for(lambda: not site.query(waiting, made), f"the start of job {turn + 1}", LIMIT_S)
            wait_for(
                lambda: site.query(waiting, made) or site.query(ended, made), f"the end of job {turn + 1}", LIMIT_S
            )
        finally:
            pilot.kill()
            pilot.wait(20)
        brought += event_pilots.bring(tmp_path / f"pilot-{turn}")
    ours = "FROM jobs WHERE jeditaskid = %s ORDER BY pandaid"
    found = site.query(f"SELECT eventservice, jobstatus, jobsubstatus, nevents, pilotid {ours}", made)
    assert [row[:4] for row in found] == [
        (1, "finished", "es_retry", 17),
        (1, "finished", "es_merge", 8),
        (2, "finished", None, 25),
    ]
    assert {row[4] for row in found} == {"unknown|PR|3.7.0.36"}
    states = "SELECT status, sum((def_max_eventid - def_min_eventid) / events_per_range + 1)::int, coalesce(max(error_code), 0)"
    assert site.query(f"{states} FROM jedi_events WHERE jeditaskid = %s GROUP BY 1 ORDER BY 1", made) == [
        (7, 2, 1220),
        (9, 7, 0),
    ]
    zips = "SELECT type, count(*) FROM job_files WHERE jeditaskid = %s AND type LIKE 'zip%%' GROUP BY 1 ORDER BY 1"
    assert site.query(zips, made) == [("zipinput", len(brought)), ("zipoutput", len(brought))] and len(brought) >= 2
    assert site.query("SELECT status FROM jedi_tasks WHERE jeditaskid = %s", made) == [("done",)]
    (merged,) = files(site, "user.ada.ranges.1")
    assert merged.read_text() == text
