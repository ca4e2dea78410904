"""Refusals of command lines: one line with the fault and the probable meaning, one line with where to find help."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import django
from django.core.checks import Tags
from django.core.management import ManagementUtility
from django.core.management.base import BaseCommand, CommandParser

from jedisite.vocabulary.words import nearest

_LACKS_OR_UNKNOWN = re.compile("unrecognized arguments: |the following arguments are required: ")
_NO_CHOICE = re.compile(r".*invalid choice: '(.*)' \(choose from (.*)\)", re.DOTALL)
REFUSED = 2
"""Exit code of a command that cannot be read."""
SET = "installation"
"""Tag of the checks of what was set for this installation."""


def _meant(name: str, known: Sequence[str]) -> str:
    near = nearest(name, known)
    return f" Did you mean {near}?" if near else ""


class Parser(CommandParser):
    """Django's, with a refusal that helps. `unknown`: a sentence on what helps where an option is not there."""

    unknown = ""
    _words: list[str] = []

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """All must be known: so an action of a command refuses what it does not know by itself, with its own options."""
        self._words = list(sys.argv[1:] if args is None else args)
        given, rest = super().parse_known_args(self._words, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return given, rest

    def error(self, message: str) -> NoReturn:
        words, no_choice = self._words, _NO_CHOICE.fullmatch(message)
        if no_choice and no_choice[1] in words:
            words = words[: words.index(no_choice[1])]  # after it stand the options of the action that was meant
        said = list(self._unknown_options(words)) if no_choice or _LACKS_OR_UNKNOWN.match(message) else []
        if said and self.unknown:
            said.append(self.unknown)
        elif no_choice and not said:
            said.append(f"{message}." + _meant(no_choice[1], re.findall("'([^']*)'", no_choice[2])))
        text = " ".join(said) or message
        if self.called_from_command_line:
            self.exit(REFUSED, f"{self.prog}: {text}\n{self.prog} --help lists the arguments.\n")
        super().error(text)
        raise AssertionError("the refusal ends the command")

    def _unknown_options(self, words: Sequence[str]) -> Iterator[str]:
        """A sentence on each option that is not there; an option that is lacking may be the one that was meant."""
        known = [option for action in self._actions for option in action.option_strings if option.startswith("--")]
        for word in words:
            name = word.partition("=")[0]
            if word == "--":
                return
            if word.startswith("--") and not any(option.startswith(name) for option in known):
                yield f"there is no option {name}." + _meant(name, known)


class Suggesting(BaseCommand):
    """A command of this site. `unknown`: see Parser.

    What was set is checked at each start. Django's checks of the code import all pages, which takes a quarter of the start;
    `migrate` and the tests make them.
    """

    unknown = ""
    requires_system_checks: list[str] | tuple[str, ...] = (Tags.compatibility, Tags.files, SET)

    def create_parser(self, prog_name: str, subcommand: str, **more: Any) -> CommandParser:
        whole = super().create_parser(prog_name, subcommand, **more)
        parser = Parser(
            prog=whole.prog,
            description=whole.description,
            parents=[whole],
            add_help=False,
            formatter_class=whole.formatter_class,
            called_from_command_line=whole.called_from_command_line,
        )
        parser.unknown = self.unknown
        return parser


def refusal(arguments: Sequence[str]) -> str:
    """The refusal of a command line that our command cannot read; "" when it can, or when only the command can decide.

    For a command that makes a home: a process without one reads the words first.
    """
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "jedisite.light_settings", "JEDI_SECRET_KEY": "none is kept"}
    done = subprocess.run(
        [sys.executable, "-m", "jedisite.management.command_line", *arguments],
        cwd=Path(__file__).resolve().parents[2],
        env=environment,
        capture_output=True,
        text=True,
    )
    return done.stderr if done.returncode == REFUSED else ""


def _read(words: Sequence[str]) -> None:
    django.setup()
    command = ManagementUtility(["manage.py", *words]).fetch_command(words[0])
    command._called_from_command_line = True  # type: ignore[attr-defined]
    command.create_parser("manage.py", words[0]).parse_args(words[1:])


if __name__ == "__main__":
    _read(sys.argv[1:])
