"""Writes the lists of the map of the code."""

from __future__ import annotations

from typing import Any

from jedisite.management.command_line import Suggesting
from jedisite.vocabulary.words import plural
from tasks_app.labs.mapping import reading, written


class Command(Suggesting):
    help = "Write the lists of docs/map.md anew: which file answers an address, holds a table, reads a parameter."

    def handle(self, *args: Any, **options: Any) -> None:
        text = written.renewed()
        (reading.ROOT / written.MAP).write_text(text)
        self.stdout.write(f"{written.MAP} has {plural(text.count(chr(10)), 'line')}")
