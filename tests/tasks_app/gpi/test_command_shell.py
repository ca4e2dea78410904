"""Jobs at the command line, and what it says of what is wrong."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks_app.gpi.command_shell import main
from tasks_app.gpi.ganga import ArgSplitter, Executable, Job
from tasks_app.gpi.job_registry import JobRegistry

ROOT = Path(__file__).resolve().parents[3]


def test_jobs_are_listed_submitted_watched_and_removed(
    jobs: JobRegistry, ended: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    def call(*words: str) -> tuple[int, str]:
        code = main(words, registry=jobs, sleep=lambda seconds: jobs.look(jobs[0], now=True))
        said = capsys.readouterr()
        return code, said.out + said.err

    Job(
        name="one", application=Executable(exe="sh", args=["-c", "test $SUBJOB = 0"]), splitter=ArgSplitter(append=True)
    )
    jobs[0].splitter.args = [["a"], ["b"]]
    assert call("submit", "0")[0] == 0
    code, said = call("watch", "0")
    assert code == 1 and said.splitlines()[-1] == "job 0 failed: 1 failed, 1 completed"
    assert (
        "0.1" in call("list", "0", "--status", "failed")[1] and "0.0" not in call("list", "0", "--status", "failed")[1]
    )
    assert call("copy", "0.1") == (0, "1\n") and call("resubmit", "0.0")[0] == 0
    ended(jobs(0))
    assert call("peek", "0.0")[1].splitlines()[0] == "stderr (0 bytes)"
    assert call("outputs", "0")[1].count("stdout") == 2
    for words, told in (
        (["peek", "0.0", "x"], "job 0.0 has no output x"),
        (["kill", "1"], "job 1 is new: there is nothing to kill"),
        (["submit", "7"], "there is no job 7"),
        (["list", "--status", "x"], "x is no state of a job"),
    ):
        code, said = call(*words)
        assert code == 1 and told in said and len(said.splitlines()) == 1
    assert call("remove", "0", "1")[0] == 0 and len(jobs) == 0


def test_a_script_needs_no_import(jobs: JobRegistry, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "script.py").write_text("import sys\nprint(len(sys.argv), Executable().exe, callable(Job))\n")
    assert main(["run", str(tmp_path / "script.py"), "x"], registry=jobs) == 0
    assert capsys.readouterr().out == "2 echo True\n"


@pytest.mark.parametrize("program", [["-m", "tasks_app.gpi"], ["manage.py", "jobs"]])
def test_both_programs_answer(program: list[str], tmp_path: Path, jobs: JobRegistry) -> None:
    Job(name="from here")
    done = subprocess.run(
        [sys.executable, *program, "list"],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "JEDI_GPI_HOME": str(jobs.store.root), "JEDI_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "from here" in done.stdout, done.stderr
    assert not (tmp_path / "home").exists() or not any((tmp_path / "home").glob("postgres*"))


def test_what_is_typed_wrongly_is_refused_in_two_lines(jobs: JobRegistry, capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (["list", "--stats", "x"], "jobs: unrecognized arguments: --stats"),
        (["peak", "0"], "jobs: argument what: invalid choice: 'peak'"),
    ):
        with pytest.raises(SystemExit) as end:
            main(words, registry=jobs, prog="jobs")
        first, second = capsys.readouterr().err.splitlines()
        assert end.value.code == 2 and first.startswith(said) and second == "jobs --help lists the arguments."
