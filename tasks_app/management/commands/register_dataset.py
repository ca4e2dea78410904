"""`manage.py register_dataset NAME FILE...`: makes a dataset of files on this machine."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from tasks_app.ddm.local import register_dataset
from tasks_app.scopes import scope_of


class Command(BaseCommand):
    help = "Register files of this machine as a dataset of the local catalogue, with their size and checksum."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="the dataset, for instance user.alice.measurements")
        parser.add_argument("files", nargs="+", type=Path, help="files, or folders of which all files are taken")
        parser.add_argument("--events", type=int, help="events in each file")

    def handle(self, *args: Any, **options: Any) -> None:
        paths: list[Path] = []
        for path in options["files"]:
            paths += sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        try:
            register_dataset(options["name"], scope_of(options["name"]), paths, events=[options["events"]] * len(paths))
        except (OSError, ValueError) as exc:
            raise CommandError(str(exc)) from exc
        self.stdout.write(f"{options['name']}: {len(paths)} files")
