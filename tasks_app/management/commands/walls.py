"""`manage.py walls`: whether anything stands between payloads and this machine."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from brokerage_app.information.local import QUEUE
from brokerage_app.models import Queue
from tasks_app.pilot.walls import find

UNWALLED = "unwalled"
"""Key of a queue's description: why its payloads run without walls."""


class Command(BaseCommand):
    help = "Say whether payloads of the local pilots run behind walls on this machine, and note it at the local queue."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        found = find(
            readable=settings.JEDI_PAYLOAD_READS,
            hidden=[str(settings.JEDI_HOME)],
            network=settings.JEDI_PAYLOAD_NETWORK,
        )
        why = found if isinstance(found, str) else ""
        queue = Queue.objects.filter(pk=QUEUE).first()
        if queue is not None and queue.data.get(UNWALLED, "") != why:
            rest = {key: value for key, value in queue.data.items() if key != UNWALLED}
            queue.data = rest | ({UNWALLED: why} if why else {})
            queue.save(update_fields=["data"])
        if why:
            self.stderr.write(
                f"Payloads cannot be kept apart from this machine: {why}. "
                "Local pilots run jobs of the site's administrators only; those of others stay queued."
            )
        elif isinstance(found, str) or found.uid is None:
            self.stdout.write("Payloads run in namespaces of their own, as the user of the pilots.")
        else:
            self.stdout.write("Payloads run in namespaces of their own, as users that nothing else runs as.")
