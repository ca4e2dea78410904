"""`manage.py jobs`: jobs of Ganga's interface at the command line, as `python -m tasks_app.gpi`. Needs no database."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand

from tasks_app.gpi.command_shell import main


class Command(BaseCommand):
    help = "Jobs of Ganga's interface: list, submit, kill, resubmit, copy, remove, peek, outputs, watch, run."
    requires_system_checks: list[str] = []

    def run_from_argv(self, argv: list[str]) -> None:
        sys.exit(main(argv[2:], prog="manage.py jobs"))

    def handle(self, *args: Any, **options: Any) -> None:
        main(list(args), prog="manage.py jobs")
