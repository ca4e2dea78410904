"""Options of commands: who misspells one gets the one that is near, and not a page of all that there are."""

from __future__ import annotations

import re
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandParser

from jedisite.words import nearest

_UNKNOWN = re.compile(r"unrecognized arguments: (.*)", re.DOTALL)


class Parser(CommandParser):
    """Django's, with a refusal that helps. `unknown`: a sentence on what helps where an option is not there."""

    unknown = ""

    def error(self, message: str) -> NoReturn:
        found = _UNKNOWN.fullmatch(message)
        words = found[1].split() if found else []
        said = [self._no_option(word.partition("=")[0]) for word in words if word.startswith("-")]
        if said and self.unknown:
            said.append(self.unknown)
        super().error(" ".join(said) or message)
        raise AssertionError("the refusal ends the command")

    def _no_option(self, name: str) -> str:
        known = {option for action in self._actions for option in action.option_strings if option.startswith("--")}
        near = nearest(name, known)
        return f"there is no option {name}." + (f" Did you mean {near}?" if near else "")


class Suggesting(BaseCommand):
    """A command of many options. `usage`: its line in refusals; `unknown`: see Parser."""

    usage = ""
    unknown = ""

    def create_parser(self, prog_name: str, subcommand: str, **more: Any) -> CommandParser:
        whole = super().create_parser(prog_name, subcommand, **more)
        parser = Parser(
            prog=whole.prog, usage=self.usage or None, description=whole.description, parents=[whole], add_help=False,
            formatter_class=whole.formatter_class, called_from_command_line=whole.called_from_command_line,
        )  # fmt: skip
        parser.unknown = self.unknown
        return parser
