"""Commands that were typed wrongly."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command, get_commands, load_command_class
from django.core.management.base import SystemCheckError

from jedisite.management.command_line import Suggesting

CLIENT = "jobs"
"""The command line of a client that knows no Django, with a parser of its own."""
OURS = sorted(
    name for name, app in get_commands().items() if (app.endswith("_app") or app == "jedisite") and name != CLIENT
)


def refused(capsys: pytest.CaptureFixture[str], name: str, *words: str) -> list[str]:
    command = load_command_class(get_commands()[name], name)
    command._called_from_command_line = True  # type: ignore[attr-defined]
    with pytest.raises(SystemExit) as end:
        command.create_parser("manage.py", name).parse_args(words)
    assert end.value.code == 2
    return capsys.readouterr().err.splitlines()


@pytest.mark.parametrize("name", OURS)
def test_every_command_of_ours_tells_a_misspelt_option_in_two_lines(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    said, helps = refused(capsys, name, "--verbosty", "2")
    assert said.startswith(f"manage.py {name}: there is no option --verbosty. Did you mean --verbosity?")
    assert helps == f"manage.py {name} --help lists the arguments."


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("submit", "--user", "a", "--exc", "x"), "there is no option --exc. Did you mean --exec?"),
        (("submit", "--user", "a", "--outputs=a"), "there is no option --outputs. Did you mean --output?"),
        (("submit", "--user", "a", "--site", "LOCL"), "there is no option --site. Did you mean --set?"),
    ],
)
def test_submit_says_where_other_parameters_go(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert refused(capsys, *words)[0].endswith(f"{said} Give any other task parameter with --set KEY=JSON.")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("submit", "--user", "a", "--cores", "x"), "submit: argument --cores: invalid int value: 'x'"),
        (("pilot",), "pilot: the following arguments are required: --queue"),
        (("pilot", "--qeue", "A"), "pilot: there is no option --qeue. Did you mean --queue?"),
        (("download", "1", "2"), "download: unrecognized arguments: 2"),
        (("download", "1", "--", "--x"), "download: unrecognized arguments: --x"),
        (("token", "make", "a", "--dayz", "3"), "token make: there is no option --dayz. Did you mean --days?"),
        (("config", "set", "a", "b"), "config set: the following arguments are required: value"),
        (
            ("token", "mak", "a", "--days", "3"),
            "token: argument make|pilot|worker|list|revoke: invalid choice: 'mak' (choose from 'make', 'pilot', 'worker', "
            "'list', 'revoke'). Did you mean make?",
        ),
    ],
)
def test_what_else_is_wrong_is_told_in_two_lines_too(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    lines = refused(capsys, *words)
    command = said.partition(":")[0]
    assert lines == [f"manage.py {said}", f"manage.py {command} --help lists the arguments."]


def test_a_timeout_that_would_have_no_effect_is_refused() -> None:
    with pytest.raises(CommandError, match="has no effect without --exit"):
        call_command("demo", timeout=5.0)


def test_what_is_right_is_read_as_ever() -> None:
    command = load_command_class("tasks_app", "submit")
    assert isinstance(command, Suggesting)
    given = command.create_parser("manage.py", "submit").parse_args(["--user", "demo", "--exec", "x", "--set", "a=1"])
    assert (given.exec, given.set, given.user, given.verbosity) == ("x", ["a=1"], "demo", 1)


def test_a_command_checks_what_was_set_and_leaves_the_pages_unread(settings: Any) -> None:
    settings.ROOT_URLCONF = "no.such.module"
    settings.JEDI_LIMITS = {"no such limit": 5.0}
    with pytest.raises(SystemCheckError, match="JEDI_LIMITS sets no such limit"):
        call_command("agent", skip_checks=False)


def test_django_finds_no_fault_in_the_code() -> None:
    assert run_checks() == []
