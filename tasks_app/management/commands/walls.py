"""`manage.py walls`: whether anything stands between payloads and this machine."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import ProgrammingError

from brokerage_app.grid.local_twin import QUEUE
from jedisite.management.command_line import Suggesting
from tasks_app.dispatch.unwalled import note, note_channel
from tasks_app.worker_node.pilot.walls import Walls, find
from tasks_app.worker_node.submitters import panda_pilots


class Command(Suggesting):
    help = "Show whether payloads of the local pilots are isolated on this machine, and record it for the local queue."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        found = local_walls()
        why = found if isinstance(found, str) else ""
        with contextlib.suppress(ProgrammingError):  # before the first start there is no queue at which to note it
            note(QUEUE, why)
            note_channel(QUEUE, no_channel(found))
        if isinstance(found, str):
            self.stderr.write(
                f"Payloads cannot be isolated from this machine: {why}. "
                "Local pilots run only jobs of the site's administrators; other jobs stay queued."
            )
            return
        who = "as the user of the pilots" if found.uid is None else "as users that nothing else runs as"
        if settings.JEDI_PILOT == "panda":
            self.stdout.write(
                f"PanDA's pilots run in namespaces of their own, {who}. They see the files of the storage, and reach what "
                "this machine reaches. Their payloads run in further namespaces, and see their own inputs only."
            )
        else:
            self.stdout.write(f"Payloads run in namespaces of their own, {who}.")


def no_channel(found: Walls | str) -> str:
    """Why payloads here cannot take ranges of events; "" when they can."""
    if settings.JEDI_PILOT == "panda" and isinstance(found, Walls):
        return "its pilots are PanDA's, whose channel for event ranges isolated payloads cannot reach"
    return ""


def local_walls() -> Walls | str:
    """Walls for what JEDI_PILOT starts here, or a sentence on why there are none."""
    readable, hidden = settings.JEDI_PAYLOAD_READS, [str(settings.JEDI_HOME)]
    if settings.JEDI_PILOT == "panda":
        return panda_pilots.find_walls(Path(settings.JEDI_PANDA_PILOT_DIR).resolve(), readable, hidden)
    return find(readable=readable, hidden=hidden, network=settings.JEDI_PAYLOAD_NETWORK)
