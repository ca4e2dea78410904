"""`manage.py bench NAME`: measure a hot path against PostgreSQL's own speed, on a throw-away database."""

from __future__ import annotations

import importlib
import json
import logging
import signal
import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from django.core.management.base import CommandError

from jedisite.management.command_line import Suggesting
from jedisite.vocabulary.words import plural
from tasks_app.labs.bench.database import throw_away

BENCHMARKS = {
    "feed": "files of a dataset to rows; sizes: files (100000)",
    "generate": "files to jobs; sizes: files (100000), files a job (10), files of the row-by-row version (2000)",
    "dispatch": "pilots fetch jobs; sizes: jobs on the sites (24000), milliseconds of a case (2000), of the snapshot (10000)",
    "report": "pilots report, the adder books; sizes: jobs (24000), milliseconds of a case (2000), jobs to book (5000)",
    "events": "ranges of events; sizes: ranges (1000000), of a file (1000), milliseconds of a case (2000), finished ranges"
    " of other tasks, a row each (0)",
    "http": "calls over HTTP, 8 clients; sizes: jobs of a case (4000), milliseconds of a case (400)",
    "million": "one large task is fed and cut; sizes: files (1000000)",
    "latency": "from submission to the first job; sizes: tasks (7)",
    "shares": "tasks to work queues and shares; sizes: tasks (20000), work queues (50), leaves (200), running jobs (50000)",
    "broker": "verdicts of the production broker; sizes: queues (200), queues of a large grid (2000), tasks a round (40)",
    "pages": "time of every page in the server; on the database that is there, or with --tasks, --jobs, --files on a filled one",
    "split": "the splitter alone, no database; sizes: files (1000000), files of a large task (10000000), files a job (10)",
}
SIZES_OF_PAGES = ("tasks", "jobs", "files")
WITHOUT_DATABASE = frozenset({"broker", "split"})


class Command(Suggesting):
    help = (
        "Measure hot paths and compare them with PostgreSQL's own speed on the same rows. Uses a database of its own."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "benchmark", choices=sorted(BENCHMARKS), help="; ".join(f"{n}: {t}" for n, t in BENCHMARKS.items())
        )
        parser.add_argument("sizes", nargs="*", type=int, help="sizes, in the order given above")
        parser.add_argument(
            "--rounds", type=int, default=5, help="number of times the cases are run in turn (%(default)s)"
        )
        for name in SIZES_OF_PAGES:
            parser.add_argument(f"--{name}", type=int, help=f"pages: fill a database of its own with so many {name}")
        parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")

    def handle(self, *args: Any, **options: Any) -> None:
        # Ended from outside, it still takes its database and its processes away.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        logging.getLogger().setLevel(logging.WARNING)
        # Only the one that runs is imported.
        benchmark = importlib.import_module(MODULES[options["benchmark"]])
        rounds = max(1, options["rounds"])
        filled = {name: options[name] for name in SIZES_OF_PAGES}
        if any(filled.values()) and options["benchmark"] != "pages":
            raise CommandError("--tasks, --jobs and --files are for pages")
        self._say(_plan(options["benchmark"], options["sizes"], rounds, filled))
        if options["benchmark"] == "pages":
            with throw_away() if any(filled.values()) else nullcontext():
                try:
                    result = benchmark.run(filled, rounds, self._say)
                except (LookupError, benchmark.EmptyDatabaseError) as exc:
                    raise CommandError(str(exc)) from exc
        elif options["benchmark"] in WITHOUT_DATABASE:
            result = benchmark.run(options["sizes"], rounds, self._say)
        else:
            with throw_away() as place:
                result = benchmark.run(place, options["sizes"], rounds, self._say)
        for line in result.lines():
            self.stdout.write(line)
        if options["json"]:
            self.stdout.write(json.dumps(result.as_json()))

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


def _plan(name: str, sizes: Sequence[int], rounds: int, filled: Mapping[str, int | None]) -> str:
    """What is measured, how much of it, and where: filling a database takes a while before the first figures."""
    own = "in a temporary database of its own"
    if name in WITHOUT_DATABASE:
        own = "without a database"
    elif name == "pages" and not any(filled.values()):
        own = "in the present database"
    given = [str(size) for size in sizes] or [f"{size} {what}" for what, size in filled.items() if size]
    chosen = f"; chosen: {', '.join(given)}" if given else ""
    return f"bench {name}: {BENCHMARKS[name]}{chosen}; {plural(rounds, 'round')}, {own}"


_OURS = "tasks_app.labs.bench"
MODULES = {
    "broker": f"{_OURS}.brokering",
    "feed": f"{_OURS}.feeding",
    "generate": f"{_OURS}.generating",
    "events": "events_app.labs.range_rates",
    "dispatch": f"{_OURS}.dispatching",
    "report": f"{_OURS}.reporting",
    "http": f"{_OURS}.calling",
    "million": f"{_OURS}.million",
    "latency": f"{_OURS}.latency",
    "shares": f"{_OURS}.sharing",
    "pages": f"{_OURS}.page_loads",
    "split": f"{_OURS}.splitting",
}
