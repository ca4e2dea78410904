"""`manage.py local_site`: makes this machine a site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from brokerage_app.grid.local_twin import ENDPOINT, ensure_local_site
from jedisite.management.command_line import Suggesting


class Command(Suggesting):
    help = "Describe this machine as a site with one queue (LOCAL) and one storage element (LOCAL_SE)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--slots", type=int, help="jobs that run at the same time (default: the number of cores)")

    def handle(self, *args: Any, **options: Any) -> None:
        queue = ensure_local_site(settings.JEDI_STORAGE, options["slots"])
        if not Path(settings.JEDI_STORAGE).is_dir():
            self.stderr.write(
                f"the folder of {ENDPOINT} ({settings.JEDI_STORAGE}) is not there: jobs that write to it fail, and copies "
                "wait, until it is back. Where nothing is to come back, make an empty one"
            )
        self.stdout.write(f"queue {queue.name}: {queue.max_memory_mb} MB a slot, files in {settings.JEDI_STORAGE}")
