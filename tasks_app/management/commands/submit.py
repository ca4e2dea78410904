"""`manage.py submit`: submits a task from a JSON file or in a few words, without the web server."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from string import digits
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import CommandError
from django.utils import timezone
from rich.console import Console
from rich.status import Status
from rich.text import Text

from jedisite.identity import user_names
from jedisite.identity.callers import caller_of_user
from jedisite.management.command_line import Suggesting
from jedisite.models import Agent
from jedisite.processes import one_site
from jedisite.web.problems import strict_json
from tasks_app.domain.states import TASK_FINAL, TaskStatus
from tasks_app.explaining.rules.wait_facts import PYTHON
from tasks_app.explaining.why_task import explain
from tasks_app.models import Task
from tasks_app.params.schema import ParamErrors
from tasks_app.params.shorthand import Wish, dictionary, origin_of
from tasks_app.submission import submitting
from tasks_app.submission.command_queue import CommandRefusedError
from tasks_app.usage import progress_lines

LOOK_S = 1.0
WHY_EVERY_S = 5.0
"""Why a task waits is asked each time that nothing has changed for so long."""
AT_WORK = timedelta(seconds=30)
"""Agents that end no pass for so long are not at work: some are due every few seconds."""
NO_SITE = f"No site runs here ({{}}), so the task will not run: start a site in another terminal with `{PYTHON} up`."
_NO_DIGITS = str.maketrans("", "", digits)
EXIT_CODES = {
    TaskStatus.DONE: 0,
    TaskStatus.FINISHED: 3,
    TaskStatus.FAILED: 4,
    TaskStatus.ABORTED: 5,
    TaskStatus.BROKEN: 6,
}
OTHER_END = 7
IN_WORDS = ("name", "in_ds", "out_ds", "output", "n_jobs", "files_per_job", "memory_mb", "cores", "set")


class Command(Suggesting):
    help = (
        "Submit a task from a JSON file of parameters (- is standard input), or a shell command with --exec. Prints its "
        "id. With --wait it shows the task's progress and why it waits, until the task ends: exit code 0 done, 3 "
        "finished (some inputs failed), 4 failed, 5 aborted, 6 broken, 7 any other end; 1 the submission was refused."
    )
    stealth_options = ("sleep",)
    unknown = "Give any other task parameter with --set KEY=JSON."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", help="the task parameters as JSON")
        parser.add_argument("--user", required=True, help="the owner of the task, a user of this site")
        parser.add_argument("--wait", action="store_true", help="wait until the task has ended")
        words = parser.add_argument_group("short form", "instead of a file")
        words.add_argument(
            "--exec",
            metavar="COMMAND",
            help="a shell command; %%IN stands for the job's inputs, separated by commas, ${SN} for the job's number",
        )
        words.add_argument("--name", help="name of the task (default: that of --out-ds)")
        words.add_argument("--in-ds", metavar="DATASET", help="input dataset")
        words.add_argument(
            "--out-ds", metavar="DATASET", help="prefix of the output datasets (default: the task's name)"
        )
        words.add_argument(
            "--output",
            action="append",
            metavar="FILE",
            help="output file of the command, or a pattern; may be repeated",
        )
        words.add_argument("--n-jobs", type=int, help="number of jobs of a task without input")
        words.add_argument("--files-per-job", type=int, help="number of input files per job")
        words.add_argument("--memory-mb", type=int, help="memory that each job needs, in MB")
        words.add_argument("--cores", type=int, help="cores that each job takes (default: 1)")
        words.add_argument(
            "--set", action="append", metavar="KEY=JSON", help="any other task parameter, such as nEvents=10"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            name = options["user"]
            makes = f"token make {name} --new-account makes the account"
            raise CommandError(f"there is no user {name}.{user_names.meant(name)} {makes}; nothing was submitted")
        wish = _wish(options)
        try:
            raw = dictionary(wish) if wish else _read(options["file"])
            submission = submitting.check(raw, caller_of_user(user))
            most = settings.JEDI_MOST_ACTIVE_TASKS
            done = submitting.submit(submission, by=user.get_username(), most_active=most)
        except ParamErrors as exc:
            raise CommandError(_told(exc, wish)) from exc
        except (submitting.SubmissionRefusedError, CommandRefusedError) as exc:
            raise CommandError(str(exc)) from exc
        if not done.is_new:
            self.stderr.write(done.decision.sentence)
        for text in done.warnings:
            self.stderr.write(f"warning: {text}")
        self.stdout.write(str(done.task_id))
        if options["wait"]:
            code = self._wait(done.task_id, options.get("sleep") or time.sleep)
            if code:
                sys.exit(code)

    def _wait(self, task_id: int, sleep: Callable[[float], object]) -> int:
        """Show each change until the task has ended. Returns the exit code that says how."""
        console = Console(file=sys.stderr)
        said, unchanged_s, reasons = "", 0.0, _Reasons(task_id)

        def say(text: str) -> None:
            if console.is_terminal:
                console.print(text, highlight=False, markup=False)
            else:
                self.stderr.write(text)

        with Status("", console=console) as shown:
            while True:
                (row,) = progress_lines.progress_of([task_id])
                text = progress_lines.line(row)
                unchanged_s += LOOK_S
                if text != said:
                    shown.update(Text(text))
                    if not console.is_terminal:
                        self.stderr.write(text)
                    said, unchanged_s = text, 0.0
                if row["status"] in TASK_FINAL:
                    break
                if why := reasons.found(unchanged_s):
                    say(why)
                sleep(LOOK_S)
        if console.is_terminal:
            say(said)
        return EXIT_CODES.get(TaskStatus(row["status"]), OTHER_END)


class _Reasons:
    """What is said while nothing goes on: that no site runs, at once; why the task waits, after some seconds. Each once."""

    def __init__(self, task_id: int) -> None:
        self.task_id = task_id
        self.runs = True
        self.known = ""

    def found(self, unchanged_s: float) -> str:
        """A sentence that was not said yet; "" when there is none."""
        runs, self.runs = self.runs, _site_runs()
        if not self.runs:
            return NO_SITE.format(settings.JEDI_HOME) if runs else ""
        if not unchanged_s or unchanged_s % WHY_EVERY_S:
            return ""
        task = Task.objects.select_related("work_queue").filter(pk=self.task_id).first()
        headline = explain(task, timezone.now()).headline if task is not None else ""
        # Times in it grow with each look: that is no other reason.
        reason = headline.translate(_NO_DIGITS)
        if not reason or reason == self.known:
            return ""
        self.known = reason
        return headline


def _site_runs() -> bool:
    """Whether a site holds this home, or agents of one work on the same database."""
    return (
        one_site.runs(settings.JEDI_HOME) or Agent.objects.filter(last_ended_at__gt=timezone.now() - AT_WORK).exists()
    )


def _told(faults: ParamErrors, wish: Wish | None) -> str:
    """A line for each fault: with the field of the file, or with the option as it was typed."""
    lines = [(_option(e.field, wish) if wish else e.field, e.message) for e in faults.errors]
    return "\n".join(dict.fromkeys(f"{place}: {message}" if place else message for place, message in lines))


def _option(field: str, wish: Wish) -> str:
    origin = field if field in ("exec", *IN_WORDS) else origin_of(field, wish)
    if origin in wish.more:
        return f"--set {field}"
    return f"--{origin.replace('_', '-')}" if origin else field


def _wish(options: dict[str, Any]) -> Wish | None:
    """What is to be submitted in a few words; None when a file says it. Raises CommandError."""
    given = [f"--{name.replace('_', '-')}" for name in IN_WORDS if options[name] is not None]
    if options["file"] is not None:
        if options["exec"] is not None or given:
            raise CommandError(
                f"a file contains the whole task:  {', '.join(['--exec'] * (options['exec'] is not None) + given)} are for --exec"
            )
        return None
    if options["exec"] is None:
        raise CommandError("give a file or --exec")
    return Wish(
        options["exec"],
        name=options["name"] or "",
        in_ds=options["in_ds"] or "",
        out_ds=options["out_ds"] or "",
        outputs=tuple(options["output"] or ()),
        jobs=options["n_jobs"],
        files_per_job=options["files_per_job"],
        memory_mb=options["memory_mb"],
        cores=options["cores"],
        more=dict(_assigned(text) for text in options["set"] or ()),
    )


_FLAGS = {
    **dict.fromkeys(("yes", "on", "true"), "true"),
    **dict.fromkeys(("no", "off", "false"), "false"),
    "none": "null",
}
"""What people write for values of JSON."""


def _assigned(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    try:
        if not (name and equals):
            raise ValueError("KEY=JSON is needed")
        return name, strict_json(value.encode())
    except ValueError as exc:
        if (meant := _FLAGS.get(value.lower())) and name:
            raise CommandError(f"--set {text[:100]}: write {name}={meant}") from exc
        raise CommandError(f"--set {text[:100]}: {exc}; write a text as '{name or 'KEY'}=\"text\"'") from exc


def _read(file: str) -> Any:
    try:
        return strict_json(sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes())
    except OSError as exc:
        raise CommandError(f"{file} cannot be read: {exc.strerror}") from exc
    except ValueError as exc:
        raise CommandError(f"{file} is not valid JSON: {exc}") from exc
