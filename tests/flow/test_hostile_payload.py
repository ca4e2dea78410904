"""A whole installation with two users: a job that tries to take it over gets nothing, and whatever one of them uploads, no task
of the other ever runs it. One site is enough for all, since each test looks at tasks of its own.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import tarfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest

from tests.clients.test_pilot import files, jobs, post, task
from tests.installation import Site, wait_for, walled_site

LIMIT_S = 120
USERS = "from django.contrib.auth.models import User; [User.objects.create_user(n) for n in ('ada', 'bob')]"
SECRET = "from tasks_app.submission.user_secrets import set_secret; set_secret('ada', 'KEY', 's3cret')"

THIEF = r"""
import glob, json, os, socket, subprocess, sys
home, ports = sys.argv[1], [int(port) for port in sys.argv[2].split(",")]
got = {}
for name in ("", "/secret_key", "/run/DATABASE_URL", "/postgres/state.json"):
    got[name] = os.path.exists(home + name)
for port in ports:
    with socket.socket() as probe:
        got[port] = probe.connect_ex(("127.0.0.1", port)) == 0
paths = glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline")
texts = [open(path, "rb").read() for path in paths if os.access(path, os.R_OK)]
got["secrets of processes"] = any(b"postgresql:" + b"//" in text or b"jedi" + b"_" in text for text in texts)
got["processes"] = len(glob.glob("/proc/[0-9]*")) > 10
got["files of root"] = bool(glob.glob(os.path.join("/", "root", "*", "*token*"))) or os.access("/etc/shadow", os.R_OK)
print(json.dumps(got))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with walled_site(tmp_path_factory) as site:
        site.manage("shell", "-c", f"{USERS}; {SECRET}")
        site.environment["JEDI_SANDBOX_DAYS"] = "0"  # of commands, not of the site that has started
        yield site


@pytest.fixture(scope="module")
def tokens(site: Site) -> dict[str, str]:
    made = {}
    for name in ("ada", "bob"):
        kept = site.home / f"token-{name}"
        site.manage("token", "make", name, "--file", str(kept))
        made[name] = kept.read_text().strip()
    return made


def archive(command: str) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as tar:
        member = tarfile.TarInfo("run.sh")
        member.size = len(command)
        tar.addfile(member, io.BytesIO(command.encode()))
    return whole.getvalue()


def upload(site: Site, token: str, name: str, content: bytes) -> tuple[bool, str]:
    head = f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "multipart/form-data; boundary=x"}
    url = f"{site.url}/api/v1/file_server/upload_cache_file"
    with urllib.request.urlopen(urllib.request.Request(url, head + content + b"\r\n--x--\r\n", headers)) as answer:
        said = json.load(answer)
    return said["success"], said["message"]


def parameters(name: str, sandbox: str, **more: Any) -> dict[str, Any]:
    made = f"user.ada.{name}"
    output = {"param_type": "output", "dataset": f"{made}.txt", "value": f"{made}.${{SN}}.txt", "hidden": True}
    return {
        "taskName": made,
        "prodSourceLabel": "user",
        "noInput": True,
        "nEvents": 1,
        "nEventsPerJob": 1,
        "maxAttempt": 1,
        "log": {"type": "template", "param_type": "log", "dataset": f"{made}.log", "value": f"{made}.${{SN}}.log.tgz"},
        "jobParameters": [
            {"type": "constant", "value": f"-a {sandbox} -- 'sh ./run.sh > ${{OUTPUT0}}'"},
            {"type": "template", **output},
        ],
        **more,
    }


def refused(site: Site, token: str, path: str, body: dict[str, Any]) -> tuple[int, str]:
    with pytest.raises(urllib.error.HTTPError) as no:
        post(site, token, path, body)
    return no.value.code, no.value.read().decode()


def ended(site: Site, task_id: int, *states: str) -> bool:
    return dict(site.query("SELECT jeditaskid, status FROM jedi_tasks"))[task_id] in states


def test_the_name_of_a_sandbox_that_was_removed_is_not_taken_over(site: Site, tokens: dict[str, str]) -> None:
    name = f"jobO.{uuid4()}.tar.gz"
    own, evil = archive("cat run.sh; exit 3"), archive("rev panda_secrets.json")
    assert upload(site, tokens["ada"], name, own) == (True, "")
    task_id = post(site, tokens["ada"], "/api/v2/tasks/", parameters("hij", name, useSecrets=True))["id"]
    wait_for(lambda: ended(site, task_id, "failed"), "the end of the task", LIMIT_S)
    site.manage("agent", "old_sandboxes", "--once")
    assert upload(site, tokens["bob"], name, evil) == (
        False,
        f"the name {name} belongs to another user: choose another name",
    )
    commands = f"/api/v2/tasks/{task_id}/commands/"
    for command in ("retry", "incexec"):
        code, text = refused(site, tokens["ada"], commands, {"command": command, "reason": "x"})
        assert code == 409 and f"the sandbox {name} was removed" in text
    assert upload(site, tokens["ada"], name, archive("other contents"))[1].endswith("choose another name")
    assert upload(site, tokens["ada"], name, own) == (True, "")
    post(site, tokens["ada"], commands, {"command": "retry", "reason": "the archive is there again"})
    codes = "SELECT jobstatus, transexitcode FROM jobs WHERE jeditaskid = %s"
    failed = [("failed", "3")] * 2
    wait_for(lambda: site.query(codes, task_id) == failed, "the second failure of the same code", LIMIT_S)


def test_a_task_is_refused_until_its_sandbox_is_there_and_runs_its_owners(site: Site, tokens: dict[str, str]) -> None:
    name = f"jobO.{uuid4()}.tar.gz"
    code, text = refused(site, tokens["ada"], "/api/v2/tasks/", parameters("absent", name))
    assert code == 422 and f"The sandbox {name} is not kept: upload it first." in text
    said = post(site, tokens["ada"], "/api/v1/task/submit", {"task_parameters": parameters("absent", name)})
    assert not said["success"] and f"The sandbox {name} is not kept: upload it first." in said["message"]
    # One that another server is to keep is fetched here all the same: its name is taken from now on.
    elsewhere = parameters("elsewhere", name, sourceURL="https://panda.example:25443")
    task_id = post(site, tokens["ada"], "/api/v2/tasks/", elsewhere)["id"]
    assert not upload(site, tokens["bob"], name, archive("echo BOB"))[0]
    wait_for(lambda: ended(site, task_id, "failed"), "the end of the task", LIMIT_S)
    assert upload(site, tokens["ada"], name, archive("echo ADA")) == (True, "")
    post(site, tokens["ada"], f"/api/v2/tasks/{task_id}/commands/", {"command": "retry", "reason": "x"})
    wait_for(lambda: ended(site, task_id, "done"), "the end of the task", LIMIT_S)
    (path,) = wait_for(lambda: files(site, "user.ada.elsewhere.txt"), "its output", LIMIT_S)
    assert path.read_text() == "ADA\n"


def states(site: Site, name: str) -> list[str]:
    """States of the task's jobs."""
    return [row[0] for row in jobs(site).get(name, [])]


def test_a_payload_on_a_whole_site_gets_nothing(site: Site, tokens: dict[str, str]) -> None:
    port = int(site.url.rpartition(":")[2])
    server = int(re.findall(r":(\d+)/", site.database)[0])
    command = f"cat > thief.py <<'END'\n{THIEF}\nEND\npython3 thief.py {site.home} {port},{server} > out.txt"
    post(site, tokens["ada"], "/api/v2/tasks/", task("thief", command))
    wait_for(lambda: states(site, "thief") in (["finished"], ["failed"]), "the end of the job", LIMIT_S)
    assert states(site, "thief") == ["finished"], (site.home / "log" / "local_workers.log").read_text()[-2000:]
    (path,) = wait_for(lambda: files(site, "user.ada.thief.1"), "its output in the catalogue", LIMIT_S)
    got = json.loads(path.read_text())
    assert len(got) == 9 and {name: what for name, what in got.items() if what} == {}


def test_no_secret_is_in_the_environment_or_the_words_of_a_process(site: Site) -> None:
    wait_for(lambda: any("tasks_app.worker_node.pilot" in one.cmdline() for one in site.victims()), "a pilot")
    kept = [*(site.home / "run").iterdir(), *(site.home / "work").glob("w-*/token"), site.home / "secret_key"]
    # Where the site is, and its process, is no secret.
    secrets = [path.read_text() for path in kept if path.name != "site.lock"]
    secrets += [secret.split(":")[2].split("@")[0] for secret in secrets if secret.startswith("postgresql://")]
    assert len(secrets) == 4
    looked = 0
    for process in site.victims():
        with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError, FileNotFoundError):  # it has just ended
            text = Path(f"/proc/{process.pid}/environ").read_text() + " ".join(process.cmdline())
            looked += 1
            assert not [secret for secret in secrets if secret in text], process.cmdline()
    assert looked >= 6
    assert all(path.stat().st_mode & 0o77 == 0 for path in kept)
