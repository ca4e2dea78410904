"""A misspelt option of a command."""

from __future__ import annotations

import pytest

from tasks_app.management.commands.submit import Command

WORDS = ["--user", "demo"]


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    command = Command()
    command._called_from_command_line = True
    with pytest.raises(SystemExit):
        command.create_parser("manage.py", "submit").parse_args([*WORDS, *words])
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--exc", "x"), "there is no option --exc. Did you mean --exec? "),
        (("--outputs=a",), "there is no option --outputs. Did you mean --output? "),
        (("--site", "LOCL"), "there is no option --site. "),
    ],
)
def test_a_misspelt_option_is_told_with_the_one_that_is_near(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    text = refused(capsys, *words)
    assert said in text and "Any other task parameter is given by --set KEY=JSON." in text
    assert len(text.splitlines()) <= 3, text


def test_what_else_is_wrong_is_told_as_ever(capsys: pytest.CaptureFixture[str]) -> None:
    assert "argument --cores: invalid int value: 'x'" in refused(capsys, "--cores", "x")
    given = Command().create_parser("manage.py", "submit").parse_args([*WORDS, "--exec", "x", "--set", "a=1"])
    assert (given.exec, given.set, given.user, given.verbosity) == ("x", ["a=1"], "demo", 1)
