"""`manage.py config`: the shared configuration, on the command line."""

from __future__ import annotations

from collections.abc import Collection
from getpass import getuser
from typing import Any

from django.core.management.base import CommandError, CommandParser

from brokerage_app.grid import configured, configured_names, configuring
from brokerage_app.policy.configuration import Configuration, Row
from brokerage_app.policy.parameter import Parameter, UnknownParameterError
from brokerage_app.policy.parameters import PARAMETERS, parse_key
from jedisite.management.command_line import Parser, Suggesting


class Command(Suggesting):
    help = "Show, set and unset values of the shared configuration (table gdp_config)."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(parser_class=Parser, dest="action", required=True)
        shown = actions.add_parser("list", help="all parameters with their defaults, and what is set")
        shown.add_argument("component", nargs="?", help="only those of one component")
        shown.add_argument("--set", action="store_true", dest="only_set", help="only what is set")
        change = actions.add_parser("set", help="set a value")
        remove = actions.add_parser("unset", help="remove a value, so that the default applies")
        for action in (change, remove):
            action.add_argument("component", help="such as jobbroker")
            action.add_argument("key", help="such as MIN_WEIGHT_managed")
        change.add_argument("value", help="a number, true or false, a text, or JSON, depending on the parameter")
        for action in (change, remove):
            action.add_argument("--vo", default="", help="for this VO only")
            action.add_argument("--reason", default="", help="for the audit trail")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["action"] == "list":
            self._list(options["component"], options["only_set"])
            return
        names, more = (options["component"], options["key"]), {"vo": options["vo"], "reason": options["reason"]}
        try:
            if options["action"] == "set":
                configuring.set_value(*names, options["value"], by=getuser(), **more)
                self.stdout.write(f"{'.'.join(names)} is {options['value']}{_for(options['vo'])}")
            elif configuring.unset_value(*names, by=getuser(), **more):
                self.stdout.write(f"{'.'.join(names)} is not set any more{_for(options['vo'])}")
            else:
                raise CommandError(f"{'.'.join(names)} is not set{_for(options['vo'])}")
        except (UnknownParameterError, configuring.BadValueError) as exc:
            raise CommandError(str(exc)) from exc

    def _list(self, component: str | None, only_set: bool) -> None:
        found = configured.read()
        bad = dict(configured_names.faults(found))
        wanted = [p for p in PARAMETERS if component in (None, p.component)]
        if not wanted:
            raise CommandError(f"there is no component {component}")
        for parameter in wanted:
            rows = _rows_of(found, parameter, bad)
            if rows or not only_set:
                unit = f" {parameter.unit}" if parameter.unit else ""
                default = parameter.default_words or (
                    "none" if parameter.default is None else f"{parameter.default}{unit}"
                )
                said = f"{parameter.meaning} (default {default})"
                self.stdout.write(f"{parameter.component}.{parameter.name}: {said}")
            for text in rows:
                self.stdout.write(f"    {text}")
        for row, sentence in bad.items():
            self.stderr.write(f"not in force: {row.component}.{row.key}{_for(row.vo)}: {sentence}")


def _for(vo: str) -> str:
    return f" for {vo}" if vo else ""


def _rows_of(found: Configuration, parameter: Parameter, bad: Collection[Row]) -> list[str]:
    return [
        f"{row.key}{_for(row.vo)} = {row.value_json or row.value}"
        for row in found.rows
        if row not in bad and (parsed := parse_key(row.component, row.key)) is not None and parsed[0] is parameter
    ]
