"""`manage.py register_dataset NAME FILE...`: makes a dataset of files on this machine, or a container of datasets."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import CommandError

from jedisite.identity import user_names
from jedisite.management.command_line import Suggesting
from jedisite.vocabulary.words import plural
from tasks_app.domain.scopes import CONTAINER_MARK, scope_of
from tasks_app.inputs.registering import register_container, register_dataset
from tasks_app.models import CatalogueDataset, CatalogueFile


class Command(Suggesting):
    help = (
        "Register files of this machine as a dataset of the local catalogue, with their size and checksum. "
        "From then on, every user of this site can read them in a task. "
        "A name that ends with / is a container: datasets are named instead of files."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="the dataset, for instance user.alice.measurements, or a container")
        parser.add_argument(
            "files", nargs="+", help="files, or folders with all their files; for a container, datasets"
        )
        parser.add_argument("--events", type=int, help="events in each file")
        parser.add_argument(
            "--open",
            action="store_true",
            help="leave the dataset open: more files can be added later with the same command",
        )
        parser.add_argument("--owner", default="", help="the user to whom the dataset belongs (default: this site)")

    def handle(self, *args: Any, **options: Any) -> None:
        name, given, owner = options["name"], options["files"], options["owner"]
        if owner and not User.objects.filter(username=owner).exists():
            makes = f"token make {owner} --new-account makes the account"
            raise CommandError(f"there is no user {owner}.{user_names.meant(owner)} {makes}; nothing was registered")
        try:
            if name.endswith(CONTAINER_MARK):
                container = register_container(name, given, is_open=options["open"])
                self.stdout.write(f"{name}: {plural(container.members.count(), 'dataset')}")
                return
            paths = _files_of(map(Path, given))
            if not paths:
                raise CommandError(f"no file is in {', '.join(given)}; nothing was registered")
            events = [options["events"]] * len(paths)
            before = CatalogueFile.objects.filter(dataset__name=name).count()
            is_open, scope = options["open"], scope_of(name, owner)
            made = register_dataset(name, scope, paths, events=events, is_open=is_open, owner=owner)
        except OSError as exc:
            hint = ""
            if CatalogueDataset.objects.filter(name__in=given).exists():
                hint = f". To make a container of datasets, end its name with a slash: {name}{CONTAINER_MARK}"
            raise CommandError(f"{exc.filename} cannot be read: {exc.strerror}; nothing was registered{hint}") from exc
        except ValueError as exc:
            raise CommandError(str(exc)) from exc
        files = made.files.count()
        added = f", {plural(files - before, 'is', 'are')} new" if before else ""
        self.stdout.write(f"{name}: {plural(files, 'file')}{added}")
        if unseen := _unseen(paths):
            self.stderr.write(_told(unseen))


def _told(unseen: Path) -> str:
    """The shell that registers need not have the settings of the service that starts pilots: so it is said in any case."""
    says = (
        f"see the site's storage ({settings.JEDI_STORAGE}) and the folders of JEDI_PAYLOAD_READS only: docs/pilots.md"
    )
    if settings.JEDI_PILOT == "panda":
        return f"PanDA's pilots do not see {unseen}: they {says}."
    where = f"Files stay where they are, such as {unseen}"
    return f"{where}. This site's own pilots read them there; PanDA's (JEDI_PILOT=panda) {says}."


def _unseen(paths: Iterable[Path]) -> Path | None:
    """A file that PanDA's pilots would not see behind their walls; ours fetch inputs before they build them."""
    seen = [Path(folder).resolve() for folder in (settings.JEDI_STORAGE, *settings.JEDI_PAYLOAD_READS)]
    files = (path.resolve() for path in paths)
    return next((path for path in files if not any(path.is_relative_to(folder) for folder in seen)), None)


def _files_of(given: Any) -> list[Path]:
    paths: list[Path] = []
    for path in given:
        paths += sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    return paths
