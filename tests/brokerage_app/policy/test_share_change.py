"""What a share has in words, and what other values would change."""

from __future__ import annotations

from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.policy.share_change import effects, judged
from brokerage_app.policy.shares import Share, Usage

ROWS = (
    Share("Production", 60),
    Share("MC", 70, "Production"),
    Share("Derivations", 30, "Production"),
    Share("Analysis", 40),
)
LEAVES = ("MC", "Derivations", "Analysis")


@pytest.mark.parametrize(
    ("usage", "waiting", "percent", "word"),
    [
        (Usage(0, 0, 0), False, 50, "idle"),
        (Usage(0, 0, 50), False, 50, "idle"),
        (Usage(0, 0, 50), True, 50, "starved"),
        (Usage(10, 0, 50), False, 50, "little work"),
        (Usage(10, 5, 50), False, 50, "starved"),
        (Usage(44, 5, 50), False, 50, "on target"),
        (Usage(57, 0, 50), True, 50, "on target"),
        (Usage(58, 0, 50), True, 50, "over target"),
        (Usage(58, 0, 0), True, 0, "no target"),
        (Usage(0, 60, 0), False, 100, "nothing runs"),
        (Usage(0, 60, 0), False, 0, "no target"),
    ],
)
def test_a_share_is_judged_by_what_it_has_and_what_waits(
    usage: Usage, waiting: bool, percent: float, word: str
) -> None:
    assert judged(usage, waiting=waiting, percent=percent) == word


def test_a_change_of_values_is_told_for_the_whole_tree() -> None:
    executing, queued = {"MC": 700.0, "Derivations": 100.0, "Analysis": 200.0}, dict.fromkeys(LEAVES, 10_000.0)
    found = {one.name: one for one in effects(ROWS, {"Analysis": 140}, executing, queued, turned_over=0.5)}
    assert [(one.name, one.level, one.leaf) for one in found.values()] == [
        ("Production", 1, False),
        ("MC", 2, True),
        ("Derivations", 2, True),
        ("Analysis", 1, True),
    ]
    analysis, production = found["Analysis"], found["Production"]
    assert (analysis.percent, analysis.new_percent, analysis.changed) == (40, 70, True)
    assert (production.percent, production.new_percent, production.changed) == (60, 30, False)
    # Half of the slots come free: from 200 half the way to 400, and to 700.
    assert (analysis.executing, analysis.expected, analysis.new_expected) == (200, 300, pytest.approx(450))
    assert production.difference == pytest.approx(-analysis.difference) == pytest.approx(-150)
    assert found["MC"].new_percent == pytest.approx(21)


def test_a_share_without_work_gets_nothing_more_whatever_its_value() -> None:
    executing = {"MC": 700.0, "Derivations": 100.0, "Analysis": 200.0}
    found = {one.name: one for one in effects(ROWS, {"Analysis": 1000}, executing, {"MC": 1e6}, turned_over=1)}
    assert found["Analysis"].new_expected == 200 and found["MC"].new_expected == 700


amounts = st.fixed_dictionaries({name: st.floats(0, 1e6) for name in LEAVES})


@given(
    values=st.dictionaries(st.sampled_from([row.name for row in ROWS]), st.integers(0, 1000)),
    executing=amounts,
    queued=amounts,
    part=st.floats(0, 1),
)
def test_nothing_is_made_or_lost_by_a_change(values, executing, queued, part):
    found = effects(ROWS, values, executing, queued, turned_over=part)
    top = [one for one in found if one.level == 1]
    assert fsum(one.executing for one in top) == pytest.approx(fsum(executing.values()))
    assert all(one.expected >= -1e-6 and one.new_expected >= -1e-6 for one in found)
    assert fsum(one.new_expected for one in top) <= fsum(executing.values()) + 1e-3
    unchanged = {one.name for one in effects(ROWS, {}, executing, queued, turned_over=part) if one.difference}
    assert not unchanged
