"""`manage.py simulate`: what the real decisions make of a simulated grid."""

from __future__ import annotations

import json
import math
import time
from argparse import ArgumentParser
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from brokerage_app.cases.production_case import ProductionSettings
from brokerage_app.grid.configured import read
from jedisite.management.command_line import Suggesting
from tasks_app.labs.simulating import simulation_report
from tasks_app.labs.simulating.engine import Simulation
from tasks_app.labs.simulating.world import usual_world, world_of_queues

LEAST_DAYS = 1.5
LINK_RATE = 100.0
SHARES = "shares"
WORLDS = {SHARES: usual_world, "work-queues": world_of_queues}


class Command(Suggesting):
    help = (
        "Run the real throttler, broker, splitter and share order on simulated sites, pilots and time, and write a report "
        "with plots. Needs no database, unless --configured is given."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--by",
            choices=list(WORLDS),
            default=SHARES,
            help="what divides the CPUs: the tree of shares, or work queues (%(default)s)",
        )
        parser.add_argument("--sites", type=int, default=50, help="number of sites (%(default)s)")
        parser.add_argument("--slots", type=int, default=20_000, help="slots of all sites (%(default)s)")
        parser.add_argument("--days", type=float, default=7.0, help="simulated days (%(default)s)")
        parser.add_argument("--seed", type=int, default=1, help="seed of the random numbers (%(default)s)")
        parser.add_argument(
            "--transfers",
            action="store_true",
            help="jobs wait until their input has been copied to their site, and outputs are gathered at the largest sites",
        )
        parser.add_argument(
            "--link-rate",
            type=float,
            default=LINK_RATE,
            help="with --transfers: MB/s of a link from one site to another, in the mean (%(default)g)",
        )
        parser.add_argument("--configured", action="store_true", help="use the configuration of this installation")
        parser.add_argument("--report", type=Path, help="folder of the report (default: JEDI_HOME/simulation)")
        parser.add_argument("--no-plots", action="store_true", help="figures only")
        parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")

    def handle(self, *args: Any, **options: Any) -> None:
        for name in ("sites", "slots", "days", "link_rate"):
            if not 0 < options[name] < math.inf:
                raise CommandError(f"--{name.replace('_', '-')} is {options[name]}; it must be above 0.")
        if options["link_rate"] != LINK_RATE and not options["transfers"]:
            raise CommandError("--link-rate has no effect without --transfers.")
        if options["slots"] < 20 * options["sites"]:
            raise CommandError(
                f"--slots is {options['slots']}; {options['sites']} sites need at least {20 * options['sites']}."
            )
        if options["days"] < LEAST_DAYS:
            raise CommandError(
                f"--days is {options['days']}; the first day is warm-up, so the minimum is {LEAST_DAYS}."
            )
        if not options["no_plots"] and find_spec("matplotlib") is None:
            raise CommandError("Plots need matplotlib: pip install -e '.[report]', or give --no-plots.")
        rng = Random(options["seed"])
        world = WORLDS[options["by"]](rng, sites=options["sites"], slots=options["slots"], days=options["days"])
        configured = read() if options["configured"] else None
        rules = ProductionSettings.from_configuration(configured, vo="atlas") if configured else None
        start = time.monotonic()
        rate = options["link_rate"] if options["transfers"] else None
        simulation = Simulation(world, rng, settings=rules, link_rate=rate, mover=configured)
        outcome = simulation.run(lambda day: self._tell(day, start))
        figures = simulation_report.summary(world.rows, outcome, world.changes)
        figures["seconds"] = round(time.monotonic() - start, 1)
        folder = options["report"] or settings.JEDI_HOME / "simulation"
        folder.mkdir(parents=True, exist_ok=True)
        pictures = [] if options["no_plots"] else simulation_report.plots(world.rows, outcome, folder)
        of = f"{options['sites']} sites with {options['slots']} slots"
        of += f" and links of {rate:g} MB/s" if rate else ""
        title = f"By {options['by']}: {options['days']:g} days of {of}, seed {options['seed']}"
        page = simulation_report.write(folder, figures, pictures, title=title)
        for name, value in figures.items():
            if not isinstance(value, list):
                self.stdout.write(f"{name.replace('_', ' '):40} {value}")
        self.stdout.write(f"Report: {page}")
        if options["json"]:
            self.stdout.write(json.dumps(figures))

    def _tell(self, day: float, start: float) -> None:
        if abs(day - round(day)) < 1 / 48:
            self.stdout.write(f"day {day:.1f} after {time.monotonic() - start:.0f} s")
            self.stdout.flush()
