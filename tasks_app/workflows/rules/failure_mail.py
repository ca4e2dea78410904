"""What a mail on failures of packages says. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from jedisite.vocabulary.words import plural, shortened
from tasks_app.workflows.rules.package_states import PackageStatus

MOST_NAMED: Final = 20
LONGEST_SAID: Final = 300
_P = PackageStatus


class Failing(NamedTuple):
    """A failure: its narrowest reason, a sentence, and where it was."""

    reason: str
    said: str
    site: str
    node: str
    job_id: int


@dataclass(frozen=True, slots=True)
class FailingPackage:
    """A package with its failures, oldest first, of which there is one at least, and its state now."""

    path: str
    software: str
    status: PackageStatus
    task_id: int
    failures: Sequence[Failing]

    @property
    def line(self) -> str:
        """What happened to it, and what comes of it."""
        last = self.failures[-1]
        times = plural(len(self.failures), "failure")
        where = " on ".join(filter(None, (last.site, last.node)))
        job = f"{'the last: ' if len(self.failures) > 1 else ''}job {last.job_id}"
        said = shortened(last.said, LONGEST_SAID)
        return f"{self.path} {self.software}: {times}, {job}{f' at {where}' if where else ''}, {last.reason}: {said} {self.after}"

    @property
    def after(self) -> str:
        return {
            _P.FAILED: "It is not restarted by itself.",
            _P.SUCCESSFUL: "It has succeeded since.",
            _P.CANCELED: "It is canceled.",
            _P.HELD: "It is on hold.",
        }.get(self.status, "It is restarted.")


@dataclass(frozen=True, slots=True)
class FailureMail:
    """`what` stands in the subject."""

    what: str
    text: str


def mail_of(name: str, packages: Sequence[FailingPackage]) -> FailureMail:
    """The mail on these packages of the workflow `name`, those that wait for somebody first."""
    first = sorted(packages, key=lambda one: (one.status is not _P.FAILED, one.path))
    number, failures = len(packages), sum(len(one.failures) for one in packages)
    reasons = Counter(failure.reason for one in packages for failure in one.failures)
    stay = sum(one.status is _P.FAILED for one in packages)
    them = "them" if stay > 1 else "it"
    waits = f"{stay} of them {'wait' if stay > 1 else 'waits'} until somebody restarts or drops {them}."
    lines = [
        f"{plural(failures, 'failure')} of {plural(number, 'package')} of workflow {name}: "
        + ", ".join(f"{reason} ({times})" for reason, times in reasons.most_common())
        + ".",
        waits if stay else "All of them are restarted or have ended.",
        "",
        *(one.line for one in first[:MOST_NAMED]),
    ]
    if number > MOST_NAMED:
        lines.append(f"and {plural(number - MOST_NAMED, 'other package')}")
    return FailureMail(f"{plural(number, 'package')} failed", "\n".join(lines))
