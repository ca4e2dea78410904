"""The shell command of a package is what its definition says, whatever runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

from tasks_app.params.job_groups import read_groups
from tasks_app.workflows.rules.definition_files import read_definition
from tasks_app.workflows.rules.task_groups import Names, planned_tasks
from tests.tasks_app.running_transforms import TRANSFORMS


def test_nothing_in_a_command_is_replaced(tmp_path: Path) -> None:
    run = """printf '%s\\n' '%INFO' "%%IN" '%_IN' "it's $HOME" > out.txt"""
    _, graph = read_definition(f"job j\nstage\nline\nbinary A\nrun {run}\nin x self\nout out.txt")
    (planned,) = planned_tasks(graph, Names("user.ada.j.1"))
    command = read_groups(planned.groups).groups[0].command
    words = [TRANSFORMS / "run_command", "-p", quote(command), "-i", "['a', 'longname']"]
    subprocess.run(
        [sys.executable, *words], cwd=tmp_path, check=True, timeout=60, env={"HOME": "/h", "PATH": "/bin:/usr/bin"}
    )
    assert (tmp_path / "out.txt").read_text() == "%INFO\n%%IN\n%_IN\nit's /h\n"
