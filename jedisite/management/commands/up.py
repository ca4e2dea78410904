"""`manage.py up`: the whole site on this machine, until Ctrl-C."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser
from django.db import connections

from jedisite.agents import passes
from jedisite.agents.housekeeping import keep_partitions
from jedisite.database import migrating
from jedisite.identity import first_account
from jedisite.management.command_line import Suggesting
from jedisite.processes import launch
from jedisite.processes.postgres import PostgresError
from jedisite.processes.supervisor import Event


class Command(Suggesting):
    help = "Run the whole site on this machine: database, web server, agents and local pilots. Ctrl-C ends it."

    def add_arguments(self, parser: CommandParser) -> None:
        launch.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            chosen = prepare(options)
            launch.run(chosen, say=self._say, ready=lambda: self._welcome(chosen.url))
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


def prepare(options: dict[str, Any]) -> launch.Options:
    """Take the port, bring the database up to date and say what to launch.

    Raises LaunchError when the port or the slots are no good.
    """
    listener = launch.take_checked_port(options["bind"], options["port"], options["slots"])
    Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)  # each web worker would warn that there is none
    if migrating.missing():
        call_command("migrate", interactive=False, verbosity=0)
    else:
        keep_partitions()  # of what follows migrations, this is needed at once; Django's command would build models of the past
    workers = not options["no_workers"]
    if workers:
        call_command("local_site", slots=options["slots"], verbosity=0, stdout=io.StringIO())
        call_command("walls", stdout=io.StringIO())  # what is amiss goes to stderr
    passes.count_anew()  # passes that were left in the queue may look at the others before a ticker runs
    connections.close_all()  # the command now only watches its children
    return launch.Options(
        home=Path(settings.JEDI_HOME),
        port=listener.getsockname()[1],
        listener=listener,
        bind=options["bind"],
        workers=workers,
        slots=options["slots"],
    )
