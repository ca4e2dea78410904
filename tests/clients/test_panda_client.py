"""panda-client as its users have it: prun, pbook and the library, with jobs that really run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.clients.user import User
from tests.installation import Site, wait_for

FILES = 20
SUM = """
import sys
names = sys.argv[1].split(",")
with open("out.txt", "w") as out:
    print(sum(int(open(name).read()) * factor for name in names), file=out)
"""
"""Sums its inputs; what `factor` is, the build decides."""
FAILS_ONCE = """
import pathlib, sys
mark = pathlib.Path(sys.argv[1])
if not mark.exists():
    mark.touch()
    sys.exit(3)
open("out.txt", "w").write("second time")
"""


def status(site: Site, task_id: int) -> str:
    return str(site.query(f"SELECT status FROM jedi_tasks WHERE jeditaskid = {task_id}")[0][0])


def outputs(site: Site, dataset: str) -> list[Path]:
    """Files of a dataset of the catalogue."""
    rows = site.query(
        f"SELECT f.url FROM catalogue_files f JOIN catalogue_datasets d ON d.id = f.dataset_id WHERE d.name = '{dataset}'"
    )
    return [Path(str(url).removeprefix("file://localhost")) for (url,) in rows]


def code(folder: Path, **files: str) -> Path:
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder


@pytest.fixture(scope="module")
def measurements(site: Site, ada: User, tmp_path_factory: pytest.TempPathFactory) -> int:
    """A dataset of local files, each with a number; returns their sum."""
    folder = tmp_path_factory.mktemp("measurements")
    for number in range(1, FILES + 1):
        (folder / f"m.{number:03d}.txt").write_text(str(number))
    site.manage("register_dataset", "user.ada.measurements", str(folder))
    return sum(range(1, FILES + 1))


def test_tasks_run_are_retried_killed_and_run_again(site: Site, ada: User, measurements: int, tmp_path: Path) -> None:
    """Four tasks at once, since PanDA's pilot takes two minutes to report a failure."""
    built = ada.prun(
        "--exec", "python3 sum.py %IN", "--bexec", "python3 configure.py", "--inDS", "user.ada.measurements",
        "--outDS", "user.ada.sums", "--outputs", "out.txt", "--nFilesPerJob", "5",
        cwd=code(tmp_path / "built", sum="from factor import factor" + SUM, configure="open('factor.py', 'w').write('factor = 3')"),
    )  # fmt: skip
    flaky = ada.prun(
        "--exec", f"python3 flaky.py {tmp_path / 'mark'}", "--outDS", "user.ada.flaky", "--outputs", "out.txt",
        "--nJobs", "1", "--noBuild",
        cwd=code(tmp_path / "flaky", flaky=FAILS_ONCE),
    )  # fmt: skip
    endless = ada.prun(
        "--exec", f"touch {tmp_path / 'started'}; sleep 3000; touch out.txt", "--outDS", "user.ada.endless", "--outputs", "out.txt",
        "--nJobs", "1", "--noBuild",
        cwd=code(tmp_path / "endless"),
    )  # fmt: skip
    half = ada.prun(
        "--exec", f"ls {tmp_path / 'allowed'} || echo %IN | grep -v m.007 > out.txt",
        "--inDS", "user.ada.measurements", "--nFiles", "10", "--nFilesPerJob", "5", "--maxAttempt", "1",
        "--outDS", "user.ada.half", "--outputs", "out.txt", "--noBuild",
        cwd=code(tmp_path / "half"),
    )  # fmt: skip
    wait_for((tmp_path / "started").exists, "the start of the endless job", 240)
    assert f"jediTaskID={endless} will be killed" in ada.pbook("kill", str(endless))
    wait_for(lambda: status(site, built) == "done", "the end of the built task", 300)
    assert "done" in ada.pbook("show", str(built))
    sums = [int(path.read_text()) for path in outputs(site, "user.ada.sums_out.txt")]
    assert len(sums) == FILES / 5 and sum(sums) == 3 * measurements
    wait_for(lambda: status(site, endless) == "aborted", "the end of the killed task", 300)
    wait_for(lambda: status(site, flaky) == "done", "the end of the flaky task", 300)
    wait_for(lambda: status(site, half) == "finished", "the end of the half task", 300)
    assert json.loads("{}") == {}
