"""`manage.py up`: the whole site on this machine, until Ctrl-C."""

from __future__ import annotations

import argparse
import contextlib
import io
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import InterfaceError, OperationalError, connections
from django.utils import timezone

from jedisite import agents, first_account, launch
from jedisite.identity import end_token, issue_token, row_of_token
from jedisite.postgres import PostgresError
from jedisite.supervisor import Event

LOCAL_QUEUE = "LOCAL"
TOKEN_LIFETIME = timedelta(days=7)
RENEWED_AFTER_S = 86_400.0
RETRIED_AFTER_S = 60.0
GRACE = {"jedi": timedelta(minutes=10), "panda": timedelta(days=2)}
"""How long a token is still good when there is a newer one. Our pilots read its file at each call; those of PanDA when they
start, and they may wait for a job for a day, and run it for another."""


class Command(BaseCommand):
    help = "Run the whole site here: database, web server, agents and local pilots. Ctrl-C ends all of it."

    def add_arguments(self, parser: CommandParser) -> None:
        add_launch_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            chosen = prepare(options)
            launch.run(chosen, say=self._say, ready=lambda: self._welcome(chosen.url), each_second=renewing(chosen))
        except (launch.LaunchError, PostgresError) as exc:
            raise CommandError(str(exc)) from exc
        except KeyboardInterrupt:
            raise CommandError("stopped before everything was started") from None

    def _welcome(self, url: str) -> None:
        for line in first_account.lines(url):
            self.stdout.write(line)
        self.stdout.flush()
        connections.close_all()

    def _say(self, event: Event) -> None:
        if event.what != "stopped":
            self.stderr.write(f"{event.name}: {event.what}, {event.detail}")


def add_launch_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of every command that brings up the site."""
    parser.add_argument("--bind", default="127.0.0.1", metavar="ADDRESS", help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, help="port of the web server (the first free one from 8000)")
    parser.add_argument("--slots", type=int, help="pilots that run at the same time on this machine")
    parser.add_argument("--no-workers", action="store_true", help="run no pilots on this machine")


def prepare(options: dict[str, Any]) -> launch.Options:
    """Bring the database up to date and choose what to launch. Raises LaunchError when the port or the slots are no good."""
    if options["slots"] is not None and options["slots"] < 1:
        raise launch.LaunchError(f"At least one slot is needed, not {options['slots']}; --no-workers runs no pilots.")
    port = launch.choose_port(options["bind"], options["port"])
    call_command("migrate", interactive=False, verbosity=0)
    workers = not options["no_workers"]
    if workers:
        call_command("local_site", slots=options["slots"], verbosity=0, stdout=io.StringIO())
        call_command("walls", stdout=io.StringIO())  # what is amiss goes to stderr
    # The one place where the local pilots get their right to fetch jobs.
    token = _pilot_token() if workers else ""
    agents.count_anew()  # passes that were left in the queue may look at the others before a ticker runs
    connections.close_all()  # the command now only watches its children
    return launch.Options(
        home=Path(settings.JEDI_HOME),
        port=port,
        bind=options["bind"],
        workers=workers,
        slots=options["slots"],
        pilot_token=token,
    )


def _pilot_token() -> str:
    return issue_token("local workers", "pilot", site=LOCAL_QUEUE, lifetime=TOKEN_LIFETIME)


def renewing(options: launch.Options, clock: Callable[[], float] = time.monotonic) -> Callable[[], None]:
    """What is to be called about each second: now and then it gives the local pilots a new token."""
    due, current = clock() + RENEWED_AFTER_S, options.pilot_token

    def renew() -> None:
        nonlocal due, current
        if not options.workers or clock() < due:
            return
        # Without a database now, or room on the disk, there may be in a minute; the old token lasts for days.
        due = clock() + RETRIED_AFTER_S
        with contextlib.suppress(OperationalError, InterfaceError, OSError):
            old, fresh = row_of_token(current), _pilot_token()
            launch.keep_secret(options.home, launch.PILOT_TOKEN, fresh)
            current, due = fresh, clock() + RENEWED_AFTER_S
            if old:
                end_token(old, timezone.now() + GRACE[settings.JEDI_PILOT])
        connections.close_all()

    return renew
