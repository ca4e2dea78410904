"""The map of the code: its lists are what the generator makes, and its hand-written part names what exists."""

from __future__ import annotations

import re

import pytest

from jedisite import refusals
from tasks_app.labs.mapping import code_files, written

TEXT = (code_files.ROOT / written.MAP).read_text()
BY_PEOPLE = TEXT.partition(written.MARK)[0]
NAMED = sorted(set(written.NAMED.findall(BY_PEOPLE)))


def test_the_lists_are_those_of_the_code() -> None:
    assert written.renewed() == TEXT, "run `manage.py map`"


def test_the_glossary_is_that_of_the_help() -> None:
    assert (code_files.ROOT / written.GLOSSARY_FILE).read_text() == written.glossary(), "run `manage.py map`"


def test_the_constant_of_a_refusal_code_has_its_name_and_stands_in_a_file_of_the_list() -> None:
    """So the list of files is enough, and a new code changes nothing in it."""
    listed = re.findall(
        r"^\| `([\w/]+\.py)` \|", TEXT.partition("## Refusal codes")[2].partition("\n## ")[0], re.MULTILINE
    )
    found = {code: name for path in listed for code, name in code_files.constants_of_codes(path).items()}
    assert found == {code: code.upper() for code in refusals.all_codes()}


def test_the_part_by_hand_answers_enough_questions() -> None:
    rows = [line for line in BY_PEOPLE.splitlines() if re.search(r"^\| .* \| `[\w/]+\.py` `", line)]
    assert len(rows) >= 40


@pytest.mark.parametrize(("path", "name"), NAMED, ids=map(" ".join, NAMED))
def test_what_the_part_by_hand_names_exists(path: str, name: str) -> None:
    assert name in code_files.defined(path)
