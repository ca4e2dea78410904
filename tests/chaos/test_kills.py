"""Any process may be killed at any moment: the whole installation with real processes, kills in the middle, clean books after."""

from __future__ import annotations

import contextlib
import json
import random
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.installation import Site, wait_for
from tests.thorough import cases

pytestmark = pytest.mark.timeout(900)
KILLS = cases(10, full=20)
JOBS = 20 + 2 * KILLS
TASK = {
    "taskName": "user.chaos.count",
    "prodSourceLabel": "user",
    "noInput": True,
    "nEvents": JOBS,
    "nEventsPerJob": 1,
    "maxAttempt": 20,
    "ramCount": 500,
    "ramUnit": "MB",
    "log": {"type": "template", "param_type": "log", "dataset": "user.chaos.log", "value": "chaos.${SN}.log.tgz"},
    "jobParameters": [
        {"type": "constant", "value": "-- 'echo ${FIRSTEVENT} > ${OUTPUT0}'"},
        {
            "type": "template",
            "param_type": "output",
            "dataset": "user.chaos.out",
            "value": "chaos.${SN}.txt",
            "hidden": True,
        },
    ],
}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    tmp_path.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    site = Site(
        home,
        "--slots",
        "2",
        JEDI_PILOT_HEARTBEAT_S="1",
        JEDI_HEARTBEAT_TIMEOUT_S="6",
        JEDI_SENT_TIMEOUT_S="6",
    )
    try:
        wait_for(lambda: site.url, "the site's start")
        yield site
    finally:
        site.stop()


def finished(site: Site) -> int:
    return int(site.query("SELECT count(*) FROM jobs WHERE jobstatus = 'finished'")[0][0])


def submit(site: Site) -> None:
    site.manage("shell", "-c", "from django.contrib.auth.models import User; User.objects.create_user('chaos')")
    token = site.manage("token", "make", "chaos").split()[-1]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    opener.open(
        urllib.request.Request(f"{site.url}/api/v2/tasks/", json.dumps(TASK).encode(), headers), timeout=30
    ).close()


def test_killed_processes_lose_nothing_and_do_nothing_twice(site: Site) -> None:
    submit(site)
    chance = random.Random(20)
    step = (JOBS - 10) // KILLS
    for number in range(KILLS):
        goal = min(number * step, JOBS - 10)
        wait_for(lambda goal=goal: finished(site) >= goal, f"job {goal}")  # type: ignore[misc]
        victim = chance.choice(wait_for(site.victims, "a process to kill"))
        with contextlib.suppress(psutil.NoSuchProcess):
            victim.kill()
        if number == KILLS // 2:
            kill_database(site)
    ended = "SELECT status FROM jedi_tasks WHERE status IN ('done', 'finished', 'failed')"
    status = wait_for(lambda: site.query(ended), "the end")
    assert status == [("done",)]
    assert_books_are_right(site)


def kill_database(site: Site) -> None:
    """The server dies without a word, as in a power cut; what was answered before is there after."""
    before = wait_for(lambda: finished(site) or None, "a finished job")
    wait_for(site.server, "a database server").kill()
    assert wait_for(lambda: finished(site) >= before, "the database's return") is True


def assert_books_are_right(site: Site) -> None:
    inputs = "FROM jedi_dataset_contents WHERE type = 'pseudo_input' GROUP BY 1 ORDER BY 1"
    events = site.query(f"SELECT firstevent, count(*) {inputs}")
    assert events == [(number, 1) for number in range(1, JOBS + 1)]
    assert site.query(f"SELECT status, count(*) {inputs}") == [("finished", JOBS)]
    outputs = site.query(
        "SELECT f.url FROM catalogue_files f JOIN catalogue_datasets d ON d.id = f.dataset_id WHERE d.name = 'user.chaos.out'"
    )
    contents = sorted(int(Path(url.removeprefix("file://localhost")).read_text()) for (url,) in outputs)
    assert contents == list(range(1, JOBS + 1))
    site.manage("audit")
