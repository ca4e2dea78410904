from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tasks_app.params.commandline import remarks
from tasks_app.params.schema import parse
from tests.tasks_app.params import dictionaries as d

RECORDED: dict[str, Any] = json.loads((Path(__file__).parents[2] / "data" / "prun_tasks.json").read_text())
NO_FILES = 'Nothing replaces %IN in the command: put -i "${IN/T}" into the command line, with an item that makes IN.'


def said(text: str, transform: str = "run_command", *, of_ranges: bool = False) -> list[str]:
    files = d.template("output", "o.${SN}.txt", "user.ada.o", hidden=True)
    items = [d.template("input", "${IN}", "user.ada.x", hidden=True), files]
    return remarks(
        parse(d.smallest(noInput=None, nEvents=None, nEventsPerJob=None, jobParameters=items)),
        text,
        transform,
        of_ranges=of_ranges,
    )


@pytest.mark.parametrize(
    ("text", "name", "meant"),
    [
        ("-- 'cat ${INN}'", "INN", "IN"),
        ("-- 'cat ${in/L}'", "in", "IN"),
        ("-- 'cat > ${OUPUT0}'", "OUPUT0", "OUTPUT0"),
        ("-- 'cat > ${output0}'", "output0", "OUTPUT0"),
        ("-- 'cat > ${OUTPUT}'", "OUTPUT", "OUTPUT0"),
    ],
)
def test_a_name_that_is_near_to_a_placeholder_is_told_of(text: str, name: str, meant: str) -> None:
    assert said(text) == [f"${{{name}}} is left to the shell; did you mean ${{{meant}}}?"]


@pytest.mark.parametrize(
    "text",
    [
        "-- 'cat ${HOME}/${USER} ${PWD} ${TMPDIR} ${file%.txt} ${p#/proc/} ${x:-default} ${#list[@]} ${!ref}'",
        "-- 'for i in 1 2; do echo ${i} ${n} ${N}; done'",
        "-- 'INN=$(ls); echo ${INN}'",
        "-- 'for inn in ${IN/S}; do cat ${inn}; done; read OUTPUT; echo ${OUTPUT}'",
        "-- 'cat ${IN/L} ${IN[0:1]} ${IN/M[#+1]} > ${OUTPUT0}; echo ${SN/P} ${SN:04d} ${IN,IN} ${file:-${IN}}'",
    ],
)
def test_other_names_of_the_shell_are_not_told_of(text: str) -> None:
    assert said(text) == []


def test_a_bracket_that_does_not_close_is_told_of() -> None:
    assert said("-- 'cat ${IN > ${OUTPUT0}'") == [
        "${IN is left to the shell, because the text after it does not form a placeholder."
    ]
    assert said("-- 'cat ${IN'") == [
        "${IN is left to the shell, because the text after it does not form a placeholder."
    ]


@pytest.mark.parametrize("text", ["-- 'cat ${IN}", '-p "cat'])
def test_quotes_that_do_not_close_are_told_of(text: str) -> None:
    (one,) = said(text)
    assert one == "The command line of its jobs cannot be split into words, no closing quotation: each job will fail."


@pytest.mark.parametrize(
    ("text", "transform", "is_told"),
    [
        ('-p "cat%20%25IN"', "run_command", True),
        ("-- 'cat %IN'", "run_command", True),
        ("-- cat %IN", "https://site.example/trf/user/run_command", True),
        ('-j "cat%20%25IN" --trf', "athena_command", True),
        ("-- 'cat %IN'", "my_own", False),
        ('-i "${IN/T}" -p "cat%20%25IN"', "run_command", False),
        ('--inMap "{\'IN\': ${IN/T}}" -p "cat%20%25IN"', "run_command", False),
        ("-- 'date +%%IN; cat %INPUT x%IN'", "run_command", False),
    ],
)
def test_a_command_for_files_that_gets_none_is_told_of(text: str, transform: str, is_told: bool) -> None:
    assert said(text, transform) == ([NO_FILES] if is_told else [])


@pytest.mark.parametrize(
    ("command", "near"),
    [
        ("cat %INN", ["%INN"]),
        ("cat %in", ["%in"]),
        ("cat %IN %In %INPUT %INN %INN", ["%In", "%INPUT", "%INN"]),
        ("cat %IN2 %IN", []),
        ("date +%Y-%i; cat x%in %%in %INDEX", []),
    ],
)
def test_a_name_near_to_that_of_the_files_is_told_of(command: str, near: list[str]) -> None:
    text = f"--inMap \"{{'IN': ${{IN/T}}, 'INDEX': ${{IN/T}}}}\" -- '{command}'"
    assert said(text) == [f"Nothing replaces {name} in the command; did you mean %IN?" for name in near]


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("awk -v s=${SKIPEVENTS} -v m=${MAXEVENTS} f", ["SKIPEVENTS", "MAXEVENTS"]),
        ("awk -v s=${SKIPEVENTS} -v s=${SKIPEVENTS}", ["SKIPEVENTS"]),
        ("SKIPEVENTS=3; echo ${SKIPEVENTS}", []),
        ("echo ${HOME} ${n} $SKIPEVENTS", []),
    ],
)
def test_names_that_nothing_fills_in_a_quoted_command_are_told(command: str, names: list[str]) -> None:
    told = said(f'-p "{quote(command)}"')
    assert told == [
        f"Nothing fills ${{{name}}} in the command of -p: the shell has no such variable, and puts nothing there."
        for name in names
    ]


@pytest.mark.parametrize(
    ("command", "transform", "names"),
    [
        ("sed -n ${FIRST_EVENT},${LAST_EVENT}p f", "run_command", ["FIRST_EVENT", "LAST_EVENT"]),
        ("awk -v a=$FIRST_EVENT f", "run_command", ["FIRST_EVENT"]),
        ("sed -n ${FIRST_EVENT},${LAST_EVENT}p f", "event_command", []),
        ("FIRST_EVENT=1; sed -n ${FIRST_EVENT}p f", "run_command", []),
        ("echo $FIRST_EVENTS", "run_command", []),
    ],
)
def test_names_of_event_service_in_other_tasks_are_told(command: str, transform: str, names: list[str]) -> None:
    told = said(f'-p "{quote(command)}"', transform)
    assert told == [
        f"${name} is empty: only jobs of event service have it, which nEventsPerWorker asks for." for name in names
    ]
    assert said(f'-p "{quote(command)}"', transform, of_ranges=True) == []


@pytest.mark.parametrize(
    ("text", "transform", "is_told"),
    [
        ("", "run_command", True),
        ("-i '[]' --", "run_command", True),
        ('-p ""', "run_command", True),
        ("", "athena_command", True),
        ("", "my_own", False),
        ("-- true", "run_command", False),
    ],
)
def test_a_command_line_without_a_command_is_told_of(text: str, transform: str, is_told: bool) -> None:
    assert any("has no command" in one for one in said(text, transform)) == is_told


def test_nothing_is_said_of_what_the_client_sends() -> None:
    for raw in RECORDED.values():
        params = parse(raw)
        text = "".join(
            item.value + (" " if item.flag("padding", default=True) else "")
            for item in params.items
            if not item.flag("hidden")
        )
        assert remarks(params, text, "run_command" if " -p " in text else "athena_command") == []
