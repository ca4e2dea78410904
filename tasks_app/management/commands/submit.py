"""`manage.py submit FILE`: submits a task from a JSON file, without the web server."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from jedisite.problems import strict_json
from tasks_app import moves
from tasks_app.models import Task
from tasks_app.params.schema import ParamErrors, parse


class Command(BaseCommand):
    help = "Submit a task whose parameters stand in a JSON file (- is standard input). Prints its id."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file")
        parser.add_argument("--user", required=True, help="the owner of the task")

    def handle(self, *args: Any, **options: Any) -> None:
        data = sys.stdin.buffer.read() if options["file"] == "-" else Path(options["file"]).read_bytes()
        try:
            raw = strict_json(data)
            params = parse(raw)
        except ValueError as exc:
            raise CommandError(f"{options['file']} is not valid JSON: {exc}") from exc
        except ParamErrors as exc:
            raise CommandError("\n".join(f"{e.field}: {e.message}" for e in exc.errors)) from exc
        self.stdout.write(str(moves.submit(
            raw, name=params.task_name, user=options["user"], vo=params.vo or "local", label=params.prod_source_label,
            task_type=params.task_type, priority=params.whole("taskPriority") or 1000,
            parent_id=_parent(params.text("parentTaskName"), options["user"]),
        )))  # fmt: skip


def _parent(name: str | None, user: str) -> int | None:
    if name is None:
        return None
    found = Task.objects.filter(name=name, user=user).order_by("-id").values_list("id", flat=True).first()
    if found is None:
        raise CommandError(f"parentTaskName: {user} has no task {name}")
    return found
