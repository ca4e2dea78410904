"""A simulated pilot: fetches jobs and reports on them through the functions that the HTTP views call. It runs nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tasks_app.dispatch.handing_out import Request, get_jobs
from tasks_app.dispatch.reports import Proof, Report, update_job
from tests.flow.driving import SITE, settle

Job = dict[str, Any]
Outcome = str
"""finished · failed · incomplete (success without an output) · silent (never heard of again)"""
PAYLOAD_FAILED = {"exe_error_code": 65, "exe_error_diag": "the payload ended with 65", "pilot_error_code": 1305}


def always(outcome: Outcome) -> Callable[[Job], Outcome]:
    return lambda job: outcome


def failing_on(*names: str) -> Callable[[Job], Outcome]:
    """Jobs that read one of these files fail."""
    return lambda job: "failed" if set(names) & set(inputs_of(job)) else "finished"


def inputs_of(job: Job) -> list[str]:
    return [name for name in job["inFiles"].split(",") if name]


def stored(job: Job, **changes: Any) -> dict[str, Any]:
    """What a pilot says of the outputs it has stored."""
    names = [name for name in job["outFiles"].split(",") if name]
    return {
        name: {
            "guid": f"guid-{name}"[-40:],
            "fsize": 100,
            "adler32": "0badcafe",
            "surl": f"root://se.example//{name}",
            "nevents": 1,
            **changes,
        }
        for name in names
    }


def proof(job: Job) -> Proof:
    """As our own pilot shows it, or one that was given no secret."""
    return Proof(job["fence"], job["jobSecret"]) if "jobSecret" in job else Proof(attempt=job["attemptNr"])


def report(job: Job, status: str, **more: Any) -> Report:
    return Report(job["PandaID"], status, proof(job), **more)


def final_report(job: Job, outcome: Outcome) -> Report:
    if outcome == "failed":
        logs = {name: said for name, said in stored(job).items() if name == job["logFile"]}
        return report(job, "failed", errors=PAYLOAD_FAILED, outputs=logs)
    outputs = stored(job)
    if outcome == "incomplete":
        outputs.pop(next(name for name in outputs if name != job["logFile"]))
    return report(job, "finished", outputs=outputs, measures={"cpu_time_s": 10})


@dataclass
class Pilot:
    """`plan` says how each job ends; `ran` keeps every job in the order in which it was fetched."""

    plan: Callable[[Job], Outcome] = field(default=always("finished"))
    site: str = SITE
    with_secret: bool = True
    ran: list[Job] = field(default_factory=list)

    def fetch(self, count: int = 1, label: str = "") -> list[Job]:
        found = get_jobs(Request(self.site, label, count, node="node", worker="1", with_secret=self.with_secret))
        self.ran += found
        return found

    def start(self, job: Job) -> str:
        update_job(report(job, "starting"))
        return update_job(report(job, "running"))

    def end(self, job: Job, outcome: Outcome | None = None) -> str:
        outcome = outcome or self.plan(job)
        return update_job(final_report(job, outcome)) if outcome != "silent" else ""

    def work(self, count: int = 100) -> int:
        """Fetch jobs and bring each to its end. Returns how many."""
        found = self.fetch(count)
        for job in found:
            self.start(job)
            self.end(job)
        return len(found)


def drive(*pilots: Pilot) -> None:
    """Agents and pilots in turn, until nothing moves any more."""
    settle(*(pilot.work for pilot in pilots))


__all__ = [
    "Pilot",
    "always",
    "drive",
    "failing_on",
    "final_report",
    "inputs_of",
    "proof",
    "replace",
    "report",
    "stored",
]
