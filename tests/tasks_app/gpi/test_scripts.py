"""Scripts as they are written for Ganga, whose import line alone is ours: on this machine, and the same on a whole site with
real payloads. One site is enough for all."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks_app.worker_node.pilot import walls
from tests.installation import Site, wait_for
from tests.lacking import lacking

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = ROOT / "docs" / "ganga_scripts"
IMPORT = "from tasks_app.gpi.ganga import *\n"
LIMIT_S = 240
MERGED = "".join(f"# job 0.{n}\n{word}\n" for n, word in enumerate(("red", "green", "blue")))
SAID = {
    "arguments": f"completed 3\n{MERGED}",
    "files": "completed [2, 2, 1]\n# job 0.0\n2\n# job 0.1\n2\n# job 0.2\n1\n\n",
    "again": "failed [1, 2]\ncompleted completed completed\n",
    "events": "completed 1601 200\n",
    "function": "completed [4, 9, 16]\nNone completed 27\nTrue\n",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site of three slots; its payloads read a folder of the test."""
    if isinstance(found := walls.find(), str):
        lacking(found)
    home, readable = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("readable")
    for folder in (home.parent, home, readable):
        folder.chmod(0o755)
    site = Site(home, "--slots", "3", JEDI_PAYLOAD_READS=str(readable))
    try:
        wait_for(lambda: site.url, "the site's start")
        lines(readable)
        site.manage("token", "make", "ada", "--new-account", "--file", str(home / "token"))
        site.manage("register_dataset", "user.ada.lines", *map(str, sorted(readable.glob("lines.*.txt"))))
        site.environment["READABLE"] = str(readable)
        yield site
    finally:
        site.stop()


def lines(folder: Path) -> None:
    for number in range(5):
        (folder / f"lines.{number}.txt").write_text(f"line of {number}\n")
        (folder / f"lines.{number}.txt").chmod(0o644)


def run(script: Path, folder: Path, argument: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, str(script), str(argument)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "JEDI_GPI_HOME": str(folder / "jobs"), **environment},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_there_are_five_scripts_that_import_nothing_of_ours_but_one_line() -> None:
    found = {path.stem: path.read_text() for path in SCRIPTS.glob("*.py")}
    assert found.keys() == SAID.keys()
    assert all(text.startswith(IMPORT) and "tasks_app" not in text.removeprefix(IMPORT) for text in found.values())


@pytest.mark.parametrize("name", sorted(SAID))
def test_a_script_runs_on_this_machine(name: str, tmp_path: Path) -> None:
    lines(tmp_path)
    assert run(SCRIPTS / f"{name}.py", tmp_path, tmp_path) == SAID[name]


@pytest.mark.timeout(LIMIT_S + 60)
@pytest.mark.parametrize("name", sorted(SAID))
def test_a_script_runs_on_a_site(name: str, site: Site, tmp_path: Path) -> None:
    """The same with the site as backend, and a dataset of its catalogue for files of this machine."""
    text = (SCRIPTS / f"{name}.py").read_text().replace("Local()", "Jedi()")
    text = text.replace('GangaDataset(files=[LocalFile("lines.*.txt")])', 'CatalogueDataset("user.ada.lines")')
    (tmp_path / "script.py").write_text(text)
    token = (site.home / "token").read_text().strip()
    readable = Path(site.environment["READABLE"])
    said = run(tmp_path / "script.py", tmp_path, readable, JEDI_TOKEN=token, JEDI_SERVER_URL=site.url)
    assert said == SAID[name]
