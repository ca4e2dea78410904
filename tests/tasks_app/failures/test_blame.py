"""Whose fault an error is: one thing that has nearly all failures while others work, and nothing where that is not known."""

from __future__ import annotations

import pytest

from tasks_app.failures.rules.blame import Evidence, blame, evidence
from tasks_app.failures.rules.spreads import Over, Spread


def of(failures: int, ended_in_all: int, **tops: tuple[str, int, int]) -> tuple[str, str]:
    """The cause and its value, from `name=(top, failures there, jobs that ended there)`."""
    spread = Spread(failures, {name: Over(3, top, n) for name, (top, n, _) in tops.items()})
    ended = {(name, top): all_there for name, (top, _, all_there) in tops.items()}
    found = blame(failures, evidence(spread, ended, ended_in_all))
    return found.cause, found.top


@pytest.mark.parametrize(
    ("failures", "ended", "tops", "cause"),
    [
        (20, 1000, {"node": ("wn1", 20, 25), "site": ("A", 20, 500), "task": ("7", 8, 300)}, ("node", "wn1")),
        (20, 1000, {"node": ("wn1", 4, 25), "site": ("A", 19, 100), "task": ("7", 8, 300)}, ("site", "A")),
        (20, 1000, {"node": ("wn1", 2, 25), "site": ("A", 6, 500), "task": ("7", 20, 60)}, ("task", "7")),
        (20, 1000, {"site": ("A", 6, 500), "task": ("7", 9, 60), "user": ("ada", 20, 90)}, ("user", "ada")),
        (20, 1000, {"site": ("A", 6, 500), "version": ("3.9", 20, 100), "task": ("7", 9, 60)}, ("version", "3.9")),
        # All of a site and all of a task: it may be either.
        (20, 1000, {"site": ("A", 20, 100), "task": ("7", 20, 60)}, ("", "")),
        # The site has most jobs, so it has most failures.
        (20, 1000, {"site": ("A", 18, 900)}, ("", "")),
        # Nobody knows how jobs fare elsewhere.
        (20, 28, {"site": ("A", 20, 20)}, ("", "")),
        (4, 1000, {"node": ("wn1", 4, 4)}, ("", "")),
        (20, 1000, {"node": ("wn1", 10, 12), "site": ("A", 11, 300)}, ("", "")),
        (20, 1000, {"node": ("", 20, 25)}, ("", "")),
    ],
)
def test_the_narrowest_thing_that_stands_out_is_named(
    failures: int, ended: int, tops: dict[str, tuple[str, int, int]], cause: tuple[str, str]
) -> None:
    assert of(failures, ended, **tops) == cause


def test_the_evidence_is_told() -> None:
    one = Evidence("node", "wn1", 20, 25, 1, 975)
    found = blame(21, [one, Evidence("task", "7", 2, 100, 19, 900)])
    assert found.sentence == "Most likely worker node wn1."
    assert found.evidence == ["20 of 25 jobs on worker node wn1 failed with this error, 1 of 975 elsewhere."]
    both = blame(20, [Evidence("site", "A", 20, 100, 0, 900), Evidence("task", "7", 20, 60, 0, 940)])
    assert both.sentence == "It is either site A or task 7: nearly all failures have both."
    assert both.evidence == [
        "20 of 100 jobs at A failed with this error, 0 of 900 elsewhere.",
        "20 of 60 jobs of task 7 failed with this error, 0 of 940 elsewhere.",
    ]
    assert blame(4, [one]).sentence == "4 failures: too few to name a cause."
    assert blame(20, []).sentence == "No single node, site, pilot version, task or user stands out."
