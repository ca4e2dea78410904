"""Checks the books."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from jedisite.management.command_line import Suggesting
from tasks_app.audit import flow_invariants


class Command(Suggesting):
    help = "Check all invariants of tasks, files and jobs. Exit code 1: an invariant does not hold."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument("--rows", type=int, default=20, help="number of rows to show for each broken invariant")

    def handle(self, *args: Any, **options: Any) -> None:
        found = flow_invariants.find(options["rows"])
        if options["json"]:
            report = {
                "ok": not found,
                "checked": len(flow_invariants.INVARIANTS),
                "broken": [
                    {"name": v.invariant.name, "sentence": v.invariant.sentence, "count": v.count, "rows": v.rows}
                    for v in found
                ],
            }
            self.stdout.write(json.dumps(report, default=str))
        else:
            for violation in found:
                self.stdout.write(str(violation))
            self.stdout.write(
                f"{len(flow_invariants.INVARIANTS) - len(found)} of {len(flow_invariants.INVARIANTS)} invariants hold"
            )
        if found:
            raise SystemExit(1)
