"""panda-client as its users have it: prun, pbook and the library, with jobs that really run."""

from __future__ import annotations

import http.cookiejar
import http.server
import itertools
import re
import subprocess
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import ANY

import pytest

from tests.clients.conftest import PASSWORD
from tests.clients.user import User
from tests.installation import Site, wait_for

pytestmark = pytest.mark.timeout(900)
FILES = 20
LIMIT_S = 420
SUM = """
import sys
from factor import factor
names = sys.argv[1].split(",")
with open("out.txt", "w") as out:
    print(sum(int(open(name).read()) * factor for name in names), file=out)
"""
"""Sums its inputs; what `factor` is, the build decides."""
FAILS_ONCE = """
import sys, urllib.request
if urllib.request.urlopen(sys.argv[1]).read() == b"1":
    sys.exit(3)
open("out.txt", "w").write("second time")
"""


def status(site: Site, task_id: int) -> str:
    return str(site.query("SELECT status FROM jedi_tasks WHERE jeditaskid = %s", task_id)[0][0])


def outputs(site: Site, dataset: str) -> list[Path]:
    """Files of the datasets of the catalogue whose names begin so: a task adds to what prun was told."""
    rows = site.query(
        "SELECT f.url FROM catalogue_files f JOIN catalogue_datasets d ON d.id = f.dataset_id WHERE starts_with(d.name, %s)",
        dataset,
    )
    return [Path(str(url).removeprefix("file://localhost")) for (url,) in rows]


def code(folder: Path, **files: str) -> Path:
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder


@pytest.fixture
def counter() -> Iterator[str]:
    """Address of a server that answers how often it has been asked: a payload leaves no marks on the machine."""
    asked = itertools.count(1)

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"%d" % next(asked))

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def measurements(site: Site, ada: User) -> int:
    """A dataset of local files, each with a number; returns their sum."""
    folder = Path(site.environment["JEDI_PAYLOAD_READS"])
    for number in range(1, FILES + 1):
        (folder / f"m.{number:03d}.txt").write_text(str(number))
    site.manage("register_dataset", "user.ada.measurements", str(folder))
    return sum(range(1, FILES + 1))


def test_tasks_run_are_retried_killed_and_run_again(
    site: Site, ada: User, measurements: int, counter: str, tmp_path: Path
) -> None:
    """Four tasks at once, since PanDA's pilot takes two minutes to report a failure."""
    built = ada.prun(
        "--exec",
        "python3 sum.py %IN",
        "--bexec",
        "python3 configure.py",
        "--inDS",
        "user.ada.measurements",
        "--outDS",
        "user.ada.sums",
        "--outputs",
        "out.txt",
        "--nFilesPerJob",
        "5",
        cwd=code(tmp_path / "built", sum=SUM, configure="open('factor.py', 'w').write('factor = 3')"),
    )
    flaky = ada.prun(
        "--exec",
        f"python3 flaky.py {counter}",
        "--outDS",
        "user.ada.flaky",
        "--outputs",
        "out.txt",
        "--nJobs",
        "1",
        "--noBuild",
        cwd=code(tmp_path / "flaky", flaky=FAILS_ONCE),
    )
    endless = ada.prun(
        "--exec",
        "sleep 3000; touch out.txt",
        "--outDS",
        "user.ada.endless",
        "--outputs",
        "out.txt",
        "--nJobs",
        "1",
        "--noBuild",
        cwd=code(tmp_path / "endless"),
    )
    mended = Path(site.environment["JEDI_PAYLOAD_READS"]) / "mended"
    half = ada.prun(
        "--exec",
        f"(test -e {mended} || ! echo %IN | grep -q m.007) && echo done > out.txt",
        "--inDS",
        "user.ada.measurements",
        "--nFiles",
        "10",
        "--nFilesPerJob",
        "5",
        "--maxAttempt",
        "1",
        "--outDS",
        "user.ada.half",
        "--outputs",
        "out.txt",
        "--noBuild",
        cwd=code(tmp_path / "half"),
    )
    started = "SELECT 1 FROM jobs WHERE jeditaskid = %s AND jobstatus = 'running'"
    wait_for(lambda: site.query(started, endless), "the start of the endless job", LIMIT_S)
    assert f"jediTaskID={endless} will be killed" in ada.pbook("kill", str(endless))
    wait_for(lambda: status(site, built) == "done", "the end of the built task", LIMIT_S)
    sums = [int(path.read_text()) for path in outputs(site, "user.ada.sums_out.txt")]
    assert len(sums) == FILES / 5 and sum(sums) == 3 * measurements
    assert len(outputs(site, "user.ada.sums.log")) == FILES / 5
    wait_for(lambda: status(site, half) == "finished", "the end of the half task", LIMIT_S)
    mended.touch()
    assert f"retry was registered for task {half}" in ada.pbook("retry", str(half))
    wait_for(lambda: status(site, flaky) == "done", "the end of the flaky task", LIMIT_S)
    wait_for(lambda: status(site, half) == "done", "the second end of the half task", LIMIT_S)
    wait_for(lambda: status(site, endless) == "aborted", "the end of the killed task", LIMIT_S)
    shown = {
        line.split()[0]: line.split()[2:4]
        for line in ada.pbook("show").splitlines()
        if line.split()[:1] == [line.strip()[:8]]
    }
    assert shown == {
        str(built): ["done", "100%"],
        str(flaky): ["done", "100%"],
        str(half): ["done", "100%"],
        str(endless): ["aborted", "0%"],
    }
    ended = site.query(
        "SELECT jeditaskid, attemptnr, jobstatus, transexitcode, piloterrorcode FROM jobs WHERE jobstatus <> 'finished'"
    )
    assert sorted(row[:4] for row in ended) == [
        (flaky, 1, "failed", "3"),
        (endless, 1, "cancelled", ANY),
        (half, 1, "failed", "1"),
    ]
    assert {row[4] for row in ended} == {1305, 1144}
    site.manage("audit")


def test_pbook_commands(site: Site, ada: User, tmp_path: Path) -> None:
    """What needs no job that runs: no queue has the memory that this task wants."""
    assert "Secret set successfully" in ada.pbook("set_secret", "key", "a value")
    assert "a value" in ada.pbook("list_secrets")
    ada.pbook("delete_secret", "key")
    assert "No secrets" in ada.pbook("list_secrets")
    empty = code(tmp_path / "empty")
    task = ada.prun(
        "--exec", "true", "--outDS", "user.ada.asks", "--nJobs", "1", "--noBuild", "--memory", "900000", "-y", cwd=empty
    )
    again = ada.run(
        "prun", "--exec", "true", "--outDS", "user.ada.asks", "--nJobs", "1", "--noBuild", cwd=empty, code=90
    )
    assert f"jediTaskID={task}" in again
    found = ada.python(
        f"found = [Client.getTaskStatus({task}), Client.getTaskParamsMap({task}), Client.pauseTask({task}),"
        f" Client.getPandaIDsWithTaskID({task}), Client.getJobStatus([4711])]"
    )
    assert found[0][0] == 0 and found[1][0] == 0 and "user.ada.asks/" in str(found[1][1])
    assert found[2][1][0] is True and found[3][1] == [] and found[4][1] == [None]
    wait_for(lambda: status(site, task) == "paused", "the pause")
    assert "there is no task 99999999" in ada.pbook("kill", "99999999")
    (empty / "flow.cwl").write_text("cwlVersion: v1.0")
    (empty / "flow.yaml").write_text("a: b")
    out = ("--outDS", "user.ada.chain")
    for command in (("pchain", "--cwl", "flow.cwl", "--yaml", "flow.yaml"), ("pchain_native", "--wfd", "flow.yaml")):
        said = ada.run(*command, *out, cwd=empty, code=None)
        assert "this site runs no workflows of pchain; submit the steps as a workflow of this site" in said, said
    several = ("prun", "--exec", "true", "--nJobs", "1", "--noBuild", "--containerImage", "docker://alpine")
    assert "the command itself can run an image" in ada.run(*several, *out, cwd=empty, code=None)


def test_a_device_code_logs_in(site: Site, ada: User, tmp_path: Path) -> None:
    """pbook without a token: the person confirms in the browser, and the token is kept for the next time."""
    stranger = replace(ada, token="", folder=tmp_path)
    shown = subprocess.Popen(
        ["pbook", "show"],
        cwd=tmp_path,
        env=stranger.environment(PANDA_AUTH_VO="lab"),
        text=True,
        bufsize=1,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert shown.stdin and shown.stdout
    try:
        said = ""
        while not (found := re.search(r"go to (http\S+)", said)):
            piece = shown.stdout.readline()
            assert piece, said
            said += piece
        Person(site.url).confirm(found[1], "ada", PASSWORD)
        rest, _ = shown.communicate("y\n", timeout=60)
    finally:
        shown.kill()
    assert shown.returncode == 0 and "PBook user: Ada Lovelace" in rest, said + rest
    assert "PBook user: Ada Lovelace" in stranger.run("pbook", "show", PANDA_AUTH_VO="lab")


class Person:
    """Somebody with a browser that has no JavaScript."""

    def __init__(self, url: str) -> None:
        self.url = url
        handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
        self.opener = urllib.request.build_opener(*handlers)

    def open(self, url: str, **form: str) -> str:
        data = urllib.parse.urlencode(form).encode() if form else None
        with self.opener.open(urllib.request.Request(url, data, {"Referer": url}), timeout=30) as answer:
            return str(answer.read().decode())

    def confirm(self, url: str, name: str, password: str) -> None:
        page = self.open(f"{self.url}/login/")
        self.open(f"{self.url}/login/", username=name, password=password, csrfmiddlewaretoken=self.mark(page))
        page = self.open(url)
        code = re.search(r'name="user_code" value="([^"]+)"', page)
        assert code, page
        action = re.search(r'<form method="post" action="([^"]*)"', page[page.index("Authorise a program") :])
        assert action
        self.open(
            urllib.parse.urljoin(url, action[1]), user_code=code[1], answer="allow", csrfmiddlewaretoken=self.mark(page)
        )

    @staticmethod
    def mark(page: str) -> str:
        return re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)[-1]
