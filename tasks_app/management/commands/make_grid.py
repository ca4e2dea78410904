"""`manage.py make_grid`: a grid that was made up, with tasks, files and jobs, to measure and to try things on."""

from __future__ import annotations

import random
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from brokerage_app.grid import repository
from brokerage_app.labs.made_up_grid import SHARES, synthetic_grid
from brokerage_app.labs.made_up_grid_rows import store_grid
from brokerage_app.models import Queue
from jedisite.management.command_line import Suggesting
from jedisite.vocabulary.words import plural
from tasks_app.counts import statistics
from tasks_app.labs.synthetic import Size, make_tasks, surroundings
from tasks_app.models import Task


class Command(Suggesting):
    help = "Fill the database with made-up sites, tasks, files and jobs. Not for an installation with real tasks."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--sites", type=int, default=200, help="number of queues, including one per resource type")
        parser.add_argument("--tasks", type=int, default=1000)
        parser.add_argument("--jobs", type=int, help="default: 20 a task")
        parser.add_argument("--files", type=int, help="default: 100 a task")
        parser.add_argument("--seed", type=int, default=1, help="the same number makes the same grid")
        parser.add_argument("--force", action="store_true", help="even if tasks already exist")

    def handle(self, *args: Any, **options: Any) -> None:
        sites, tasks = options["sites"], options["tasks"]
        size = Size(
            tasks,
            options["jobs"] if options["jobs"] is not None else tasks * 20,
            options["files"] if options["files"] is not None else tasks * 100,
        )
        if min(sites, tasks, size.jobs, size.files) < 1:
            raise CommandError("the numbers of sites, tasks, jobs and files must be 1 or more")
        if not options["force"] and (found := Task.objects.count()):
            there = "there is 1 task" if found == 1 else f"there are {found} tasks"
            raise CommandError(f"{there} already: made-up ones would mix with them (use --force to do it anyway)")
        now, began = timezone.now(), time.monotonic()
        grid = synthetic_grid(sites, random.Random(options["seed"]))
        queues = store_grid(grid, now)
        places = f"{plural(len(grid.endpoints), 'storage')}, {plural(len(grid.nuclei), 'nucleus', 'nuclei')}"
        self.stdout.write(f"{plural(len(queues), 'queue')}, {places}")
        surroundings.make_users()
        made = make_tasks(
            size,
            queues,
            shares=SHARES,
            nuclei=sorted(grid.nuclei),
            endpoints=sorted(grid.endpoints),
            now=now,
            work_queues=surroundings.make_shares(),
            places=dict(Queue.objects.values_list("name", "site_name")),
            seed=options["seed"],
        )
        surroundings.make_catalogue(sorted(grid.endpoints))
        statistics.refresh()
        statistics.refresh_activity(now)
        verdicts = surroundings.keep_decisions(repository.load_grid(now), now, options["seed"])
        surroundings.keep_throttling(now)
        surroundings.keep_passes(now, min(surroundings.MOST_PASSES, tasks))
        surroundings.keep_changes(queues, now, options["seed"])
        surroundings.keep_outages(queues, now, options["seed"])
        took = time.monotonic() - began
        rows = made["tasks"] + made["files"] + made["jobs"]
        self.stdout.write(", ".join(f"{count} {kind}" for kind, count in {**made, "verdicts": verdicts}.items()))
        self.stdout.write(f"{took:.1f} s, {rows / took:.0f} rows of tasks, files and jobs a second")
