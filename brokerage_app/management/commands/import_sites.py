"""`manage.py import_sites FILE`: descriptions of queues, storage, sites and links."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import transaction
from django.utils import timezone

from brokerage_app.grid.cric import BadDescriptionError, describe
from brokerage_app.grid.grid_storing import changes, known, records, store
from brokerage_app.grid.storage_folders import prepare
from jedisite import audit
from jedisite.management.command_line import Suggesting
from jedisite.vocabulary.words import plural

SHOWN = 50
NAMES = {
    "sites": ("site",),
    "storages": ("storage",),
    "queues": ("queue",),
    "links": ("link",),
    "software": ("software entry", "software entries"),
}


class Command(Suggesting):
    help = "Import descriptions of the grid (JSON as from CRIC). If anything in the file is wrong, nothing is stored."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            plain = json.loads(options["file"].read_text())
        except OSError as exc:
            raise CommandError(f"{options['file']} cannot be read: {exc.strerror}") from exc
        except ValueError as exc:
            raise CommandError(f"{options['file']} is not JSON: {exc}") from exc
        try:
            described = describe(plain, known())
            prepare(described.storages)
        except BadDescriptionError as exc:
            for fault in exc.faults[:SHOWN]:
                self.stderr.write(str(fault))
            raise CommandError(f"nothing was stored: {plural(len(exc.faults), 'fault')}") from exc
        with transaction.atomic():
            before = records()
            stored = store(described, timezone.now())
            told = list(changes(before, records()))
            details = {
                "changed": Counter(kind for kind, _ in told),
                "read": {kind: n for kind, n in stored.items() if n},
            }
            audit.record("manage.py", "grid.import", "grid", options["file"].name, details=details)
        for _, line in told[:SHOWN]:
            self.stdout.write(line)
        if len(told) > SHOWN:
            self.stdout.write(f"and {len(told) - SHOWN} more")
        read = ", ".join(plural(count, *NAMES[kind]) for kind, count in stored.items())
        self.stdout.write(f"read {read}; {plural(len(told), 'record')} other than links new or changed")
