"""`manage.py recover_lost_files TASK --files NAME...`: outputs that are lost are made again."""

from __future__ import annotations

import getpass
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from jedisite.management.command_line import Suggesting
from tasks_app.management.named import add_task, task_named
from tasks_app.outcomes.recovery import recover, task_of_dataset
from tasks_app.outcomes.recovery_plans import CannotRecoverError


class Command(Suggesting):
    help = (
        "Make lost outputs of a task again: the jobs that made them are found and their inputs are processed again. "
        "A task that has ended runs again for them. Inputs that are lost as well are made again first, by the tasks that "
        "made them."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_task(parser, optional=True)
        parser.add_argument("--dataset", help="the dataset of the files, instead of the task")
        parser.add_argument(
            "--files", nargs="*", default=[], metavar="NAME", help="names of files, with or without their scope"
        )
        parser.add_argument("--from-file", type=Path, help="a file with one name per line")
        parser.add_argument("--reason", default="", help="reason for the log")
        parser.add_argument("--dry-run", action="store_true", help="dry run: show what would happen")

    def handle(self, *args: Any, **options: Any) -> None:
        names = [*options["files"], *_names_in(options["from_file"])]
        if options["task"] is None and not options["dataset"]:
            raise CommandError("give the number or name of a task, or --dataset")
        named = task_named(options["task"], self.stderr).id if options["task"] else None
        try:
            found = recover(
                named or task_of_dataset(options["dataset"]),
                names,
                by=getpass.getuser(),
                reason=options["reason"],
                dataset=options["dataset"],
                dry_run=options["dry_run"],
            )
        except CannotRecoverError as exc:
            raise CommandError(str(exc)) from exc
        for line in found.sentences():
            self.stdout.write(line)
        if options["dry_run"]:
            self.stdout.write("nothing was changed")


def _names_in(path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        return [line.strip() for line in path.read_text().splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as exc:
        raise CommandError(f"{path} cannot be read: {exc}") from exc
