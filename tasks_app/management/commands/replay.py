"""`manage.py replay`: what the last decisions would have been under other conditions."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from brokerage_app.advice.whatif import FORMS, ChangeError
from jedisite.management.command_line import Suggesting
from jedisite.vocabulary.words import plural
from tasks_app.explaining import deciding_again

SHOWN = 20


class Command(Suggesting):
    help = "Repeat the last decisions of the brokers with changes, on the grid of that time, and show the differences."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--last", type=int, default=200, help="number of decisions, newest first (%(default)s)")
        parser.add_argument("--change", action="append", default=[], metavar="CHANGE", help=f"{FORMS}; may be repeated")
        parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["last"] < 1:
            raise CommandError(f"--last is {options['last']}; it must be 1 or more.")
        if not options["change"]:
            raise CommandError(f"--change is missing: {FORMS}.")
        try:
            found = deciding_again.replay(options["last"], options["change"])
        except ChangeError as exc:
            raise CommandError(f"--change {exc}") from exc
        say = self.stdout.write
        say(
            f"{plural(found.decisions, 'decision')}; unchanged: {found.unchanged}, with another outcome: {found.decisive}."
        )
        if found.left_out:
            say(f"Left out because a change does not fit their grid: {found.left_out}.")
        for title, tasks in (("would get sites", found.unblocked), ("would get no site any more", found.blocked)):
            if tasks:
                say(f"{plural(len(tasks), 'task')} {title}: {', '.join(map(str, tasks[:SHOWN]))}")
        for title, sites in (("gained", found.gained), ("lost", found.lost)):
            for site, times in sites.most_common(SHOWN):
                say(f"{title:8} {site}: {plural(times, 'time')}")
        for (before, after), times in found.codes.most_common(SHOWN):
            say(f"reason   {before} -> {after}: {plural(times, 'site')}")
        if options["json"]:
            say(json.dumps(found.as_json()))
