"""Makes agents due in between the minutes of django-q2's scheduler. Run as many as you like."""

from __future__ import annotations

import signal
import threading
import time
from argparse import ArgumentParser
from typing import Any

import structlog
from django.db import close_old_connections
from django.db.utils import DatabaseError, InterfaceError

from jedisite.agents import passes
from jedisite.management.command_line import Suggesting

LOOK_FOR_DEAD_S = 2.0
log = structlog.get_logger(__name__)


class Command(Suggesting):
    help = "Hand agents that are due to django-q2; checks several times a second."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--interval", type=float, default=0.2, help="seconds between two checks")
        parser.add_argument("--once", action="store_true", help="check once and end")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["once"]:
            self.stdout.write(" ".join(passes.tick()))
            return
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        look_again, started = 0.0, False
        while not stop.wait(options["interval"]):
            try:
                if not started:
                    passes.give_rows()  # a new version may have other agents, and no migration
                    passes.count_anew()
                    started = True
                passes.tick()
                if time.monotonic() >= look_again:
                    passes.free_dead_leases()
                    look_again = time.monotonic() + LOOK_FOR_DEAD_S
            except (DatabaseError, InterfaceError) as exc:
                # The server restarts or is away: look again until it is back.
                log.warning("ticker.no_database", error=str(exc).strip())
                close_old_connections()
                stop.wait(1.0)
