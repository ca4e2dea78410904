"""Two users on a whole installation: whatever one uploads, no task of the other ever runs it."""

from __future__ import annotations

import io
import json
import tarfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.clients.test_pilot import files, post
from tests.installation import Site, wait_for, walled_site

LIMIT_S = 120
USERS = "from django.contrib.auth.models import User; [User.objects.create_user(n) for n in ('ada', 'bob')]"
SECRET = "from tasks_app.usersecrets import set_secret; set_secret('ada', 'KEY', 's3cret')"


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
        "taskName": made, "prodSourceLabel": "user", "noInput": True, "nEvents": 1, "nEventsPerJob": 1, "maxAttempt": 1,
        "log": {"type": "template", "param_type": "log", "dataset": f"{made}.log", "value": f"{made}.${{SN}}.log.tgz"},
        "jobParameters": [
            {"type": "constant", "value": f"-a {sandbox} -- 'sh ./run.sh > ${{OUTPUT0}}'"},
            {"type": "template", **output},
        ], **more,
    }  # fmt: skip


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
    jobs = "SELECT jeditaskid, jobstatus, transexitcode FROM jobs"
    failed = [(task_id, "failed", "3")] * 2
    wait_for(lambda: [tuple(row) for row in site.query(jobs)] == failed, "the second failure of the same code", LIMIT_S)


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
