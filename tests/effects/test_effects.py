"""Nothing is accepted without effect: what people, sites or tables can set is read, and a test shows what comes of it.

`entries.py` collects all entries from the tables of the code. Each stands in one of:

* a table of this folder (`*.md`), one line: `| entry | who reads it | which test shows its effect | who fills it |`. Readers and
  fillers are `module:name`, where the name is a function, `Class.method` or constant, never the declaration; the source of each
  mentions the entry by its name, code or attribute. The test is `path::test`, or `path::test+helper` when a function or constant
  of that file mentions the entry instead. Who fills it is named for columns and for what brokers are given; the rest people fill.
* the table of what is refused (`NOT_AVAILABLE`), with the sentence that people read.
* the table of columns that stay empty, in a decision (`EMPTY`), with the reason.
* `not_yet.md`, with what is missing. That list only shrinks: whoever gives an entry its effect takes the line out of it and puts
  one into the table, or the entry into the table of what is refused. A new entry never goes there.
"""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.effects import sources, tables
from tests.effects.entries import Entry, entries
from tests.effects.tables import Effect, effects, empty, not_yet, refused

DECLARATIONS = re.compile(
    r"tasks_app\.params\.(keys|split_codes|specs|items|command_parameters|acts|clientwords|differences|resubmission)$"
    r"|\.(models|migrations|labs|admin|web|lists)(\.|$)|brokerage_app\.vocabulary\.(needs|site_view|codes)|_parameters$"
)
"""Modules that say what there is, or only show it."""
FILLED = ("needs", "input", "replica", "facts", "queue", "column")
"""Kinds of entries that code fills."""
PEOPLE, DATABASE = "people", "database"
"""Who fills what is entered in the admin, and what the database works out from other columns."""
SEEN = ("tasks_app.lists.", "tasks_app.admin.")
"""What is for people is read where they see it."""
FOR_PEOPLE = "retry rule:description"


def mentions(entry: Entry, place: str, *, test: bool = False) -> str:
    """What is wrong with a place that should mention an entry; "" when it does."""
    path, _, name = place.partition("::" if test else ":")
    if not name:
        return f"{place} is no place"
    if not test:
        is_shown = path.startswith(SEEN) and (entry.key.startswith("column:") or entry.key == FOR_PEOPLE)
        if DECLARATIONS.search(path) and not is_shown:
            return f"{place} is where things are declared or shown"
        path = sources.path_of(path)
    found = [sources.words(path, one.replace("::", ".")) for one in name.split("+")]
    if None in found:
        return f"{place} is not there"
    said = frozenset[str]().union(*(words for words in found if words is not None))
    return "" if entry.is_among(said) else f"{place} does not mention {' or '.join(sorted(entry.words))}"


def faults_of(effect: Effect) -> list[str]:
    entry = entries().get(effect.key)
    if entry is None:
        return ["no such entry"]
    found = [mentions(entry, effect.reader), mentions(entry, effect.test, test=True)]
    if not re.search(r"::(\w+::)?test_\w+(\+\w+)*$", effect.test):
        found.append(f"{effect.test} is no test")
    if effect.filler and effect.filler not in (PEOPLE, DATABASE):
        found.append(mentions(entry, effect.filler))
    elif not effect.filler and effect.key.partition(":")[0] in FILLED:
        found.append("nobody fills it")
    return [fault for fault in found if fault]


def test_every_entry_stands_in_one_place() -> None:
    places = Counter([*(effect.key for effect in effects()), *not_yet(), *refused(), *empty()])
    assert [key for key, times in places.items() if times > 1] == []
    assert sorted(entries().keys() - places.keys()) == []


def test_tables_have_lines_of_the_table_only() -> None:
    wrong = [
        f"{path.name}: {line}"
        for path in tables.HERE.glob("*.md")
        for line in path.read_text().splitlines()
        if line and not line.startswith(("# ", "|"))
    ]
    assert wrong == []


def test_no_entry_is_left_of_what_is_gone() -> None:
    assert sorted((not_yet().keys() | refused() | empty()) - entries().keys()) == []


@pytest.mark.parametrize("kind", sorted({key.partition(":")[0] for key in entries()}))
def test_reader_filler_and_test_mention_it(kind: str) -> None:
    wrong = {one.key: faults for one in effects() if one.key.startswith(f"{kind}:") and (faults := faults_of(one))}
    assert wrong == {}


def test_the_list_of_what_is_missing_says_what() -> None:
    assert [key for key, missing in not_yet().items() if not missing] == []
