from dataclasses import replace

import pytest

from brokerage_app.advice.whatif import Change, ChangeError, Conditions, difference, parse, what_if
from brokerage_app.brokers.choosing import decide
from brokerage_app.cases.case import grid_of
from brokerage_app.policy.configuration import Configuration
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.stored import as_json, needs_of, pack, unpack

GRID = grid_of(
    [SiteView("A", max_memory_mb=2000), SiteView("B.1/X", max_memory_mb=4000, status="offline"), SiteView("C", cores=8)]
)
NEEDS = TaskNeeds(memory_mb=3000, cores=1)
START = Conditions(NEEDS, GRID, Configuration())


def codes(line: str) -> tuple[tuple[str, ...], dict[str, str]]:
    verdict = what_if(START, [parse(line)], decide).after
    return tuple(c.site for c in verdict.chosen), {s.site: s.code for s in verdict.skipped}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("needs.memory_mb=1500", Change("needs.memory_mb=1500", "needs", "", "memory_mb", 1500)),
        ("site.B.1/X.status=online", Change("site.B.1/X.status=online", "site", "B.1/X", "status", "online")),
        (
            "config.jobbroker.MIN_WEIGHT@atlas = 0.1",
            Change("config.jobbroker.MIN_WEIGHT@atlas = 0.1", "config", "jobbroker", "MIN_WEIGHT", 0.1, "atlas"),
        ),
        ('needs.included_sites=["A"]', Change('needs.included_sites=["A"]', "needs", "", "included_sites", ["A"])),
    ],
)
def test_lines_are_read(line: str, expected: Change) -> None:
    assert parse(line) == expected


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("memory_mb=3", "a change is"),
        ("needs.memory_mb", "a change is"),
        ("site.status=online", "a change is"),
        ("config.MIN_WEIGHT=1", "a change is"),
        ("needs.memory=3", "there is no field memory; there are:"),
        ("needs.memory_mb=much", "does not fit"),
        (f"needs.memory_mb={'[' * 100_000}", "does not fit"),
        ("site.NOWHERE.status=online", "there is no queue NOWHERE"),
        ("site.A.colour=red", "there is no field colour"),
        ("config.jobbroker.NQUEUED_SAT_CUP=3", "NQUEUED_SAT_CAP"),
        ("config.jobbroker.NQUEUED_SAT_CAP=much", "NQUEUED_SAT_CAP"),
    ],
    ids=lambda text: text[:40],
)
def test_a_change_that_cannot_be_made_says_why_and_names_the_line(line: str, why: str) -> None:
    with pytest.raises(ChangeError) as caught:
        START.under([parse(line)])
    assert why in str(caught.value) and caught.value.line == line


def test_other_needs_queues_and_parameters_change_the_decision() -> None:
    before = decide(NEEDS, GRID, Configuration())
    assert (not before.chosen and before.code == "low_memory") or before.counts()
    assert codes("needs.memory_mb=1500")[0] == ("A",)
    assert codes("site.B.1/X.status=online")[0] == ("B.1/X",)
    assert codes("needs.cores=8")[0] == ("C",)
    assert codes("site.A.status=offline")[1]["A"] == "site_offline"


def test_nothing_that_was_given_is_touched() -> None:
    grid, needs = unpack(pack(GRID)), needs_of(as_json(NEEDS))
    result = what_if(
        Conditions(needs, grid, Configuration()), [parse("site.A.max_memory_mb=9000"), parse("needs.cores=2")], decide
    )
    assert result.difference
    assert grid == GRID and needs == NEEDS


def test_the_difference_tells_what_was_gained_lost_and_why() -> None:
    result = what_if(START, [parse("site.A.max_memory_mb=3000"), parse('needs.excluded_sites=["C"]')], decide)
    found = result.difference
    assert found.gained == ("A",) and found.lost == () and found.is_decisive
    assert {name: (old.code, new.code) for name, (old, new) in found.reasons.items()} == {
        "C": ("multi_core_only", "excluded")
    }
    assert (found.blocked_before != "", found.blocked_after) == (True, "")
    assert not difference(result.after, result.after)


def test_a_configuration_that_picks_another_broker_is_used() -> None:
    conditions = replace(START, needs=replace(NEEDS, vo="atlas", label="managed", memory_mb=1000))
    result = what_if(conditions, [parse("config.brokerage.JOB_BROKER_managed@atlas=generic")], decide)
    assert {s.code for s in result.before.skipped} != {
        s.code for s in result.after.skipped
    } or result.difference.weights
