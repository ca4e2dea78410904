"""`manage.py demo`: the whole site on this machine, with real tasks at work."""

from __future__ import annotations

import json
import math
import os
import time
import urllib.request
from argparse import ArgumentParser, ArgumentTypeError
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import CommandError
from django.db import InterfaceError, OperationalError, connections
from rich.console import Console
from rich.live import Live
from rich.table import Table

from jedisite.identity import first_account
from jedisite.identity.callers import issue_token
from jedisite.management.command_line import Suggesting
from jedisite.management.commands.up import prepare
from jedisite.processes import launch
from jedisite.processes.postgres import PostgresError
from jedisite.processes.supervisor import Event
from tasks_app.domain.states import TASK_FINAL
from tasks_app.labs.demo.demo_plan import DemoTask, tasks
from tasks_app.labs.demo.demo_progress import Progress
from tasks_app.labs.demo.inputs import keep_sandbox, register_records, register_sources
from tasks_app.labs.demo.verify import Result, verify
from tasks_app.usage.progress_lines import HEADING, line, progress_of

USER = first_account.FIRST
USUAL_S = 900
FAST = {
    "JEDI_OPEN_DATASET_INTERVAL_S": "2",
    "JEDI_PENDING_RETRY_S": "5",
    "JEDI_HEARTBEAT_TIMEOUT_S": "180",
    "JEDI_SENT_TIMEOUT_S": "60",
    "JEDI_DEV_ISSUER": "dev",
}
"""Waits that suit a demonstration, and a VO for panda-client's login; what the environment says already stays."""


class Command(Suggesting):
    help = "Run the whole site here with real tasks: a small particle-physics chain, an analysis of files, and failing inputs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        launch.add_arguments(parser)
        parser.add_argument(
            "--exit", action="store_true", help="end when all tasks are final; exit code 0: all outputs are correct"
        )
        parser.add_argument("--timeout", type=_seconds, help=f"with --exit: give up after so many seconds ({USUAL_S})")

    def handle(self, *args: Any, **options: Any) -> None:
        self.console = Console()
        self.ends, self.timeout = options["exit"], options["timeout"] or USUAL_S
        if options["timeout"] and not self.ends:
            raise CommandError("--timeout has no effect without --exit: the site then runs until Ctrl-C")
        self.started = time.monotonic()
        self.plan: dict[int, DemoTask] = {}
        self.results: list[Result] = []
        self.progress = Progress()
        for name, value in FAST.items():
            os.environ.setdefault(name, value)
        try:
            self.options = prepare(options)
            with self._display():
                launch.run(self.options, say=self._say, ready=self._submit, each_second=self._look)
        except (launch.LaunchError, PostgresError) as exc:
            raise CommandError(str(exc)) from exc
        except _AllFinal:
            pass
        finally:
            connections.close_all()
        if self.ends:
            self._conclude()

    def _display(self) -> Any:
        self.live = Live(console=self.console, auto_refresh=False) if self.console.is_terminal else None
        return self.live or _Nothing()

    def _say(self, event: Event) -> None:
        if event.what != "stopped":
            self.console.print(f"{event.name}: {event.what}, {event.detail}", style="dim", highlight=False)

    def _submit(self) -> None:
        """Register the inputs and submit all tasks, over HTTP as anybody would."""
        self.password = _make_login()
        token = issue_token("demo", "user", user=User.objects.get(username=USER), lifetime=timedelta(days=1))
        self.console.print(f"\nThe site is at [bold]{self.options.url}/[/bold]", highlight=False)
        self.console.print(f"user [bold]{USER}[/bold]   {self._login()}", highlight=False)
        self.console.print(f"token for scripts: {token}\n", highlight=False, soft_wrap=True)
        if self.live is None:
            self.console.print(HEADING, style="bold", highlight=False, soft_wrap=True)
        run = f"r{int(time.time())}"
        base = f"user.{USER}.{run}"
        sources = register_sources(f"{base}.PY", f"user.{USER}")
        whole = register_records(
            f"{base}.RECORDS", f"user.{USER}", settings.JEDI_STORAGE / "records" / run, seed=int(time.time())
        )
        sandbox = keep_sandbox(settings.JEDI_HOME / "demo" / run, USER)
        for demo in tasks(USER, run, sources, whole, sandbox, self.options.url):
            self.plan[_post_task(self.options.url, token, demo.params)] = demo
        connections.close_all()

    def _look(self) -> None:
        """About once a second: show how far the tasks are, and see whether all are final."""
        try:
            rows = progress_of(list(self.plan))
        except (OperationalError, InterfaceError):  # the server has ended this moment and is started again
            connections.close_all()
            return
        if self.live is not None:
            self.live.update(self._table(rows), refresh=True)
        else:
            for row in self.progress.changed(rows, time.monotonic()):
                self.console.print(f"{line(row)}  ({self.plan[row['id']].title})", highlight=False, soft_wrap=True)
        final = all(row["status"] in TASK_FINAL for row in rows)
        if self.progress.ends(rows) and not self.ends:
            said = f"\nAll tasks have ended. The site keeps running at {self.options.url}/; Ctrl-C ends it."
            self.console.print(said, highlight=False, soft_wrap=True)
            self.console.print(f"user [bold]{USER}[/bold]   {self._login()}\n", highlight=False)
        if self.ends and (final or time.monotonic() - self.started > self.timeout):
            self.results = [verify(task_id, demo) for task_id, demo in self.plan.items()]
            raise _AllFinal
        connections.close_all()

    def _login(self) -> str:
        if self.password:
            return f"password [bold]{self.password}[/bold]   (not shown again)"
        return f"password as before (new password: manage.py changepassword {USER})"

    def _table(self, rows: list[dict[str, Any]]) -> Table:
        table = Table(title=f"{self.options.url}/   user {USER}   Ctrl-C ends all")
        for heading in ("task", "what", "status", "files done", "jobs", "says"):
            table.add_column(heading, overflow="fold")
        for row in rows:
            done = f"{row['finished']}/{row['files']}" + (f" ({row['failed']} failed)" if row["failed"] else "")
            jobs = " ".join(f"{count} {status}" for status, count in row["jobs"].items())
            table.add_row(str(row["id"]), self.plan[row["id"]].title, row["status"], done, jobs, row["says"])
        return table

    def _conclude(self) -> None:
        good = bool(self.results) and not any(result.faults for result in self.results)
        for result in self.results:
            for fault in result.faults:
                self.stderr.write(f"{result.name}: {fault}")
        summary = {
            "ok": good,
            "seconds": round(time.monotonic() - self.started, 1),
            "url": self.options.url,
            "tasks": [asdict(result) for result in self.results],
        }
        self.stdout.write(json.dumps(summary))
        if not good:
            raise SystemExit(1)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise ArgumentTypeError(f"{text[:40]} is not a time: give a number of seconds above 0")
    return seconds


class _AllFinal(Exception):
    """Every task of the demonstration has ended, or the time is over."""


class _Nothing:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: Any) -> None:
        return None


def _make_login() -> str:
    """The password of the demonstration's user when it is a new one, "" when the user has one already.

    The user may do everything on this machine's own site.
    """
    user, _ = User.objects.get_or_create(username=USER, defaults={"is_staff": True, "is_superuser": True})
    password = "" if user.password and user.has_usable_password() else first_account.new_password()
    if password:
        user.set_password(password)
        user.save(update_fields=["password"])
    return password


def _post_task(url: str, token: str, params: dict[str, Any]) -> int:
    request = urllib.request.Request(
        f"{url}/api/v2/tasks/",
        json.dumps(params).encode(),
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=60) as answer:
        return int(json.load(answer)["id"])
