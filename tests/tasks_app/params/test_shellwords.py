"""Command lines in words: those of shlex.split, in a time that grows as the length of the text."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tasks_app.params import buildstep
from tasks_app.params.buildstep import archives_of
from tasks_app.params.commandline import remarks
from tasks_app.params.schema import parse
from tasks_app.params.shellwords import words_of
from tests.tasks_app.params import dictionaries as d

MB_8 = 8_000_000
EVIL = {
    "one word": "a" * MB_8,
    "long words": ("a" * 200_000 + " ") * 40,
    "many pieces": "a'b'" * (MB_8 // 64),
    "escaped signs": '"' + "\\a" * (MB_8 // 32) + '"',
    "long quoted words": ("'" + "a" * 200_000 + "' ") * 40,
}


def outcome(split: Callable[[str], list[str]], text: str) -> list[str] | str:
    try:
        return split(text)
    except ValueError as exc:
        return str(exc)


@given(st.text(alphabet="ab -'\"\\\t\r\n\x0b\xa0é#$", max_size=30) | st.text(max_size=30))
@example('a\'b\'"c\\"\\d"\\ e')
@example("'a\\")
@example('a "b\\')
@example("a\\")
@example("\\\\'")
@example("'' \"\" ''''")
def test_words_are_those_of_shlex(text: str) -> None:
    assert outcome(words_of, text) == outcome(shlex.split, text)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", EVIL.values(), ids=EVIL)
def test_a_line_of_many_megabytes_holds_nobody_up(text: str) -> None:
    line = f"-a jobO.1.tar.gz {text}"
    began = time.process_time()
    assert archives_of({}, line) == ["jobO.1.tar.gz"]
    assert archives_of({}, f"{line} '") == ["jobO.1.tar.gz"], "such jobs fail, but are asked about all the same"
    assert time.process_time() - began < 1.5


def test_long_texts_are_not_kept_in_memory() -> None:
    buildstep._archive_of_short.cache_clear()
    for number in range(3):
        archives_of({}, f"-a jobO.{number}.tar.gz " + "a" * 20_000)
    assert buildstep._archive_of_short.cache_info().currsize == 0
    archives_of({}, "-a jobO.1.tar.gz")
    assert buildstep._archive_of_short.cache_info().currsize == 1


@pytest.mark.timeout(20)
def test_remarks_on_a_long_line_come_soon() -> None:
    """Its parts look like options of the shell's `read` and never end as such."""
    params = parse(
        d.smallest(jobParameters=[d.template("input", "${IN}", "user.ada.x", hidden=True)], noInput=None, nEvents=None)
    )
    began = time.process_time()
    said = remarks(params, "-- 'cat ${INN} " + "-read " * 100_000 + "!'", "run_command")
    assert said == ["${INN} is left to the shell; did you mean ${IN}?"]
    assert time.process_time() - began < 1.5
