"""The committed map: what people have written stands above the mark, the lists below it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tasks_app.labs.mapping import entries, reading

MAP: Final = Path("docs/map.md")
MARK: Final = "<!-- From here on `manage.py map` writes. -->\n"


def renewed() -> str:
    """The text of the map with its lists made anew."""
    by_people, mark, _ = (reading.ROOT / MAP).read_text().partition(MARK)
    return by_people + (mark or MARK) + "".join(_section(one) for one in entries.sections())


def _section(section: entries.Section) -> str:
    return "\n".join(("", f"## {section.title}", "", *_about(section), *_table(section), ""))


def _about(section: entries.Section) -> tuple[str, ...]:
    return (section.about, "") if section.about else ()


def _table(section: entries.Section) -> Iterator[str]:
    yield "| " + " | ".join(section.head) + " |"
    yield "|---" * len(section.head) + "|"
    yield from ("| " + " | ".join(row) + " |" for row in section.rows)
