"""Jobs at the command line: `python -m tasks_app.gpi`, and the same as `manage.py jobs`."""

from __future__ import annotations

import argparse
import runpy
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from tasks_app.gpi.ganga_errors import GangaException
from tasks_app.gpi.job_registry import JobRegistry, jobs
from tasks_app.gpi.rules.master_status import ACTIVE, COMPLETED, NEW

LOOK_S = 1.0
_ACTS = {
    "submit": "submit new jobs",
    "kill": "kill jobs or subjobs",
    "resubmit": "submit jobs again that have ended: of a master its failed subjobs",
    "copy": "copy jobs or subjobs: each copy is a new job",
    "remove": "remove jobs with their files here",
}


class _Parser(argparse.ArgumentParser):
    """A refusal is one line with the fault, and one with where to find help."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n{self.prog} --help lists the arguments.\n")


def parser(prog: str) -> argparse.ArgumentParser:
    made = _Parser(prog=prog, description="Jobs of Ganga's interface; an id is 4, or 4.2 for a subjob.")
    some = made.add_subparsers(dest="what", required=True)
    shown = some.add_parser("list", help="the jobs, or the subjobs of one")
    shown.add_argument("id", nargs="?")
    shown.add_argument("--status", help="only those in this state")
    shown.add_argument("--name", help="only those whose name fits this pattern, such as *x*")
    for act, help in _ACTS.items():
        some.add_parser(act, help=help).add_argument("ids", nargs="+", metavar="id")
    peek = some.add_parser("peek", help="the output files of a job, or the text of one")
    peek.add_argument("id")
    peek.add_argument("file", nargs="?", default="")
    some.add_parser("outputs", help="fetch the outputs of a job; prints where they are").add_argument("id")
    some.add_parser(
        "watch", help="print each change until a job has ended; exit code 0 when it is completed"
    ).add_argument("id")
    script = some.add_parser("run", help="run a script; Ganga's names need no import")
    script.add_argument("script")
    script.add_argument("arguments", nargs=argparse.REMAINDER)
    return made


def main(
    arguments: Sequence[str] | None = None,
    *,
    prog: str = "python -m tasks_app.gpi",
    registry: JobRegistry = jobs,
    sleep: Callable[[float], object] = time.sleep,
) -> int:
    """Run a command. Returns its exit code; what is wrong is one line on standard error."""
    given = parser(prog).parse_args(arguments)
    try:
        return _run(given, registry, sleep)
    except (GangaException, LookupError, ValueError, OSError) as error:
        sys.stderr.write(f"{prog}: {error}\n")
        return 1


def _run(given: argparse.Namespace, registry: JobRegistry, sleep: Callable[[float], object]) -> int:
    if given.what == "list":
        found = registry if given.id is None else registry(given.id).subjobs
        sys.stdout.write(f"{found.select(status=given.status, name=given.name)!r}\n")
    elif given.what == "run":
        from tasks_app.gpi import ganga

        sys.argv = [given.script, *given.arguments]
        runpy.run_path(given.script, {name: getattr(ganga, name) for name in ganga.__all__}, "__main__")
    elif given.what == "peek":
        registry(given.id).peek(given.file)
    elif given.what == "outputs":
        sys.stdout.write("".join(f"{path}\n" for path in registry(given.id).outputs()))
    elif given.what == "watch":
        return watch(registry(given.id), sleep)
    else:
        done = [_act(given.what, registry(key)) for key in given.ids]
        return 0 if all(done) else 1
    return 0


def _act(act: str, job: Any) -> bool:
    made = getattr(job, act)()
    if act == "copy":
        sys.stdout.write(f"{made.id}\n")
    return bool(made)


def watch(job: Any, sleep: Callable[[float], object] = time.sleep) -> int:
    """Print a line for each change of a job until it is at rest. Returns 0 when it is completed, else 1."""
    said = ""
    while True:
        status = job.status
        parts = ", ".join(f"{count} {name}" for name, count in job.counts().items())
        line = f"job {job.written_id} {status}" + (f": {parts}" if parts else "")
        if line != said:
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
            said = line
        if status not in ACTIVE:
            return 0 if status in (COMPLETED, NEW) else 1
        sleep(LOOK_S)
