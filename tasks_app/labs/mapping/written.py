"""The files of docs that are made: the lists of the map, below what people have written, and the glossary."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tasks_app.labs.mapping import code_files, map_lists
from tasks_app.web.help.glossary import GLOSSARY

MAP: Final = Path("docs/map.md")
GLOSSARY_FILE: Final = Path("docs/glossary.md")
NAMED: Final = re.compile(r"`([\w/]+\.py)` `([\w.]+)`")
"""A file and a name in it, as people write them."""
MARK: Final = "<!-- From here on `manage.py map` writes. -->\n"


def renewed() -> str:
    """The text of the map with its lists made anew."""
    by_people, mark, _ = (code_files.ROOT / MAP).read_text().partition(MARK)
    return NAMED.sub(_where_it_is, by_people) + (mark or MARK) + "".join(_section(one) for one in map_lists.sections())


def _where_it_is(named: re.Match[str]) -> str:
    """A file and name as they are, or with the one file to which the name has moved."""
    path, name = named.groups()
    if (code_files.ROOT / path).exists() and name in code_files.defined(path):
        return named[0]
    now = [other for other in code_files.all_files() if name in code_files.defined(other)]
    return f"`{now[0]}` `{name}`" if len(now) == 1 else named[0]


def glossary() -> str:
    head = "# Glossary\n\nThe page `/help/glossary/` says the same; `tasks_app/web/help/glossary.py` is the source of both.\n"
    return head + "".join(f"\n## {term.word}\n\n{term.meaning}\n" for term in GLOSSARY)


def _section(section: map_lists.Section) -> str:
    return "\n".join(("", f"## {section.title}", "", *_about(section), *_table(section), ""))


def _about(section: map_lists.Section) -> tuple[str, ...]:
    return (section.about, "") if section.about else ()


def _table(section: map_lists.Section) -> Iterator[str]:
    yield "| " + " | ".join(section.head) + " |"
    yield "|---" * len(section.head) + "|"
    yield from ("| " + " | ".join(row) + " |" for row in section.rows)
