"""Writes the lists of the map of the code, and the glossary."""

from __future__ import annotations

from typing import Any

from jedisite.management.command_line import Suggesting
from jedisite.vocabulary.words import plural
from tasks_app.labs.mapping import code_files, written


class Command(Suggesting):
    help = "Write docs/glossary.md and the lists of docs/map.md again: which file serves an address or defines a table."

    def handle(self, *args: Any, **options: Any) -> None:
        text = written.renewed()
        (code_files.ROOT / written.MAP).write_text(text)
        (code_files.ROOT / written.GLOSSARY_FILE).write_text(written.glossary())
        self.stdout.write(f"{written.MAP} has {plural(text.count(chr(10)), 'line')}")
