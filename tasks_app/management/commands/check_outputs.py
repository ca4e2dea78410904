"""`manage.py check_outputs TASK`: what the catalogue has of a task's outputs against what its books say."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from jedisite.management.command_line import Suggesting
from jedisite.vocabulary.words import plural
from tasks_app.management.named import add_task, task_named
from tasks_app.outcomes import output_check


class Command(Suggesting):
    help = "Compare the outputs of a task with the catalogue and the storages of this machine. Exit code 1: something is wrong."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_task(parser)
        parser.add_argument("--mend", action="store_true", help="remove files that no job made, and duplicates")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        found = output_check.check(task_named(options["task"], self.stderr).id, storages=True)
        removed = output_check.mend(found) if options["mend"] else 0
        if options["json"]:
            self.stdout.write(json.dumps({"ok": found.is_clean, "removed": removed, **asdict(found)}))
        else:
            for line in found.sentences():
                self.stdout.write(line)
            if found.is_clean:
                self.stdout.write(_agree(found.compared))
            elif options["mend"]:
                self.stdout.write(f"removed: {plural(removed, 'file')}")
            else:
                self.stdout.write("nothing was changed")
        if not found.is_clean:
            raise SystemExit(1)


def _agree(compared: int) -> str:
    """What is said of outputs with nothing wrong."""
    if not compared:
        return "the task has no outputs or logs yet, in its books or in the catalogue"
    return f"{plural(compared, 'output or log', 'outputs and logs')} in the books, all of them in the catalogue as reported"
