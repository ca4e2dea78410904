from __future__ import annotations

from dataclasses import replace

import pytest

from brokerage_app.policy.configuration import DEFAULTS, Configuration, Row
from tasks_app.upkeep.rules.withholding import Reader, Source, WithholdLimits, withhold

LIMITS = WithholdLimits(500, 900)
FULL, FREE = Reader("FULL", 10, 21), Reader("FREE", 10, 20)


@pytest.mark.parametrize(
    ("intensity", "priority", "sources", "held"),
    [
        (500.0, 899, [Source("A", readers=(FULL,))], True),
        (499.9, 899, [Source("A", readers=(FULL,))], False),
        (None, 899, [Source("A", readers=(FULL,))], False),
        (500.0, 900, [Source("A", readers=(FULL,))], False),
        (500.0, 899, [], False),
        (500.0, 899, [Source("A")], False),  # nobody is known to read there
        (500.0, 899, [Source("A", readers=(FREE,))], False),
        (500.0, 899, [Source("A", readers=(FULL, FREE))], False),
        (500.0, 899, [Source("A", readers=(FULL,)), Source("B", readers=(FREE,))], False),
        (500.0, 899, [Source("A", readers=(FULL,)), Source("B", blacklisted=True, readers=(FREE,))], True),
        (500.0, 899, [Source("B", blacklisted=True)], True),
        (500.0, 899, [Source("A", readers=(Reader("SMALL", 1, 20),))], False),
        (500.0, 899, [Source("A", readers=(Reader("SMALL", 1, 21),))], True),
    ],
)
def test_who_reads_much_waits_for_room_where_the_input_is(
    intensity: float | None, priority: int, sources: list[Source], held: bool
) -> None:
    reason = withhold(intensity, priority, sources, LIMITS)
    assert bool(reason) is held
    assert reason is None or reason.code == "task_withheld"


def test_the_limit_is_never_below_100() -> None:
    there = [Source("A", readers=(FULL,))]
    assert withhold(99.0, 0, there, replace(LIMITS, io_intensity=1)) is None
    assert withhold(100.0, 0, there, replace(LIMITS, io_intensity=1))


def test_nothing_is_withheld_unless_it_is_configured() -> None:
    assert WithholdLimits.from_configuration(DEFAULTS, "managed") == WithholdLimits()
    assert withhold(10_000.0, 0, [Source("A", readers=(FULL,))], WithholdLimits()) is None
    rows = (("LIMIT_IOINTENSITY_managed", "500", "float"), ("LIMIT_PRIORITY_managed", "900", "int"))
    some = Configuration(tuple(Row("jedi", "task_withholder", *row) for row in rows))
    assert WithholdLimits.from_configuration(some, "managed") == LIMITS
