"""`manage.py local_workers`: keeps the slots of this machine filled with pilots."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from brokerage_app.grid.queue_status import no_queue
from jedisite.management.command_line import REFUSED, Suggesting
from tasks_app.dispatch.unwalled import note, note_channel
from tasks_app.dispatch.worker_tickets import OneEach
from tasks_app.management.commands.walls import local_walls, no_channel
from tasks_app.worker_node.pilot.settings import SERVER_VARIABLE, TOKEN_VARIABLE, SettingsError, token_in
from tasks_app.worker_node.submitters.base import OneForAll, PilotSpec, Tickets
from tasks_app.worker_node.submitters.local_pilots import serve
from tasks_app.worker_node.submitters.panda_pilots import CannotIsolateError
from tasks_app.worker_node.submitters.pilot_kinds import OwnPilot, PandaPilot


class Command(Suggesting):
    help = "Run pilots on this machine, one per slot. SIGTERM or Ctrl-C ends them all."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--slots", type=int, default=os.cpu_count() or 1, help="pilots at a time (%(default)s)")
        parser.add_argument("--queue", default="LOCAL", help="queue to work for (%(default)s)")
        parser.add_argument("--server", default="", help=f"address of the site (default: ${SERVER_VARIABLE})")
        parser.add_argument("--label", default="", help="only jobs of this prodSourceLabel (default: any)")
        parser.add_argument(
            "--heartbeat",
            type=float,
            default=settings.JEDI_PILOT_HEARTBEAT_S,
            metavar="S",
            help="seconds between heartbeats",
        )
        parser.add_argument("--memory", type=int, default=0, metavar="MB", help="memory of a slot (default: not set)")
        parser.add_argument("--keep", action="store_true", help="keep the work folders of finished jobs")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["slots"] < 1:
            raise CommandError(f"At least one slot is needed, not {options['slots']}.")
        server = options["server"] or os.environ.get(SERVER_VARIABLE, "")
        path = os.environ.get(f"{TOKEN_VARIABLE}_FILE")
        try:
            token = token_in(os.environ)
        except SettingsError as exc:
            raise CommandError(str(exc)) from exc
        if not server:
            raise CommandError(f"{SERVER_VARIABLE} is not set.")
        spec = PilotSpec(
            options["queue"],
            server,
            options["label"],
            options["heartbeat"],
            options["memory"],
            options["keep"],
            network=settings.JEDI_PAYLOAD_NETWORK,
            readable=tuple(settings.JEDI_PAYLOAD_READS),
            hidden=(str(settings.JEDI_HOME),),
        )
        if not token and (fault := no_queue(options["queue"])):
            raise CommandError(f"no pilot is started: {fault}", returncode=REFUSED)
        kind = _kind_of_pilot(options["queue"], with_database=not token)
        walled = isinstance(kind, PandaPilot) and kind.walled
        tickets: Tickets = OneEach(options["queue"], walled=walled)
        if token and not walled:  # one that was made by hand names no program for the walls round payloads
            tickets = OneForAll(token, Path(path) if path else None)
        serve(Path(settings.JEDI_HOME) / "work", kind, tickets, spec, options["slots"])


def _kind_of_pilot(queue: str, *, with_database: bool) -> OwnPilot | PandaPilot:
    """The pilots of the settings. A service with a token need not reach the database: nothing is noted of our own pilots then."""
    if settings.JEDI_PILOT != "panda":
        if with_database:
            note_channel(queue, "")
        return OwnPilot()
    if not settings.JEDI_PANDA_PILOT_DIR:
        raise CommandError("JEDI_PILOT is panda: JEDI_PANDA_PILOT_DIR must name the unpacked source of panda-pilot.")
    walls = local_walls()
    note_channel(queue, no_channel(walls))
    if isinstance(walls, str) and not note(queue, walls):
        # This pilot cannot say itself that it must not get jobs of everybody.
        raise CommandError(
            f"Payloads cannot be isolated from this machine ({walls}), and the site has no queue {queue}."
        )
    try:
        source, storage = (Path(path).resolve() for path in (settings.JEDI_PANDA_PILOT_DIR, settings.JEDI_STORAGE))
        return PandaPilot(source, storage, walls)
    except CannotIsolateError as exc:
        raise CommandError(str(exc)) from exc
