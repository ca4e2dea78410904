"""`manage.py pilot`: one pilot, in the foreground."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from django.conf import settings as site_settings
from django.core.management.base import CommandError, CommandParser

from jedisite.management.command_line import Suggesting
from tasks_app.worker_node.pilot.main import run
from tasks_app.worker_node.pilot.settings import SettingsError, add_arguments, from_arguments


class Command(Suggesting):
    help = "Fetch jobs of one queue and run them here. The pilot's token is read from JEDI_PILOT_TOKEN."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        options["hidden"].append(str(site_settings.JEDI_HOME))
        try:
            settings = from_arguments(argparse.Namespace(**options))
        except SettingsError as exc:
            raise CommandError(str(exc)) from exc
        if code := run(settings):
            sys.exit(code)
