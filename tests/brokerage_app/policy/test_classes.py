import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.formulas.quantiles import percentile, student_t
from brokerage_app.policy.classes import (
    SiteClass,
    SiteWaits,
    TaskClass,
    TaskClassLimits,
    Waits,
    classify_sites,
    site_class,
    slots_by_class,
    task_class,
    user_class,
)
from brokerage_app.policy.configuration import DEFAULTS, Row

HI, MID, LO = SiteClass.HI, SiteClass.MID, SiteClass.LO
S, A, B, C = TaskClass.S, TaskClass.A, TaskClass.B, TaskClass.C
LIMITS = TaskClassLimits()


@pytest.mark.parametrize(
    ("part", "freedom", "value"),
    [
        (0.95, 1, 6.313752),
        (0.95, 2, 2.919986),
        (0.95, 5, 2.015048),
        (0.95, 10, 1.812461),
        (0.95, 30, 1.697261),
        (0.95, 1e9, 1.644854),
        (0.975, 4, 2.776445),
        (0.5, 3, 0.0),
        (0.05, 5, -2.015048),
        (0.95, 0.5, 41.136),
    ],
)
def test_students_t_has_the_values_of_the_tables(part: float, freedom: float, value: float) -> None:
    assert student_t(part, freedom) == pytest.approx(value, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(("part", "freedom"), [(0.0, 1), (1.0, 1), (0.95, 0.0), (0.95, -1)])
def test_students_t_is_not_asked_for_what_does_not_exist(part: float, freedom: float) -> None:
    with pytest.raises(ValueError, match="no quantile"):
        student_t(part, freedom)


@given(st.floats(0.01, 0.99), st.floats(0.01, 1e6))
def test_students_t_is_symmetric_and_finite(part: float, freedom: float) -> None:
    value = student_t(part, freedom)
    assert math.isfinite(value)
    assert student_t(1 - part, freedom) == pytest.approx(-value, rel=1e-6, abs=1e-6)


def test_percentiles_are_linear_between_neighbours() -> None:
    assert [percentile([10, 0, 20], part) for part in (0, 0.25, 0.5, 1)] == [0, 5, 10, 20]
    assert percentile([7], 0.33) == 7
    with pytest.raises(ValueError):
        percentile([], 0.5)


def waits_of(*samples: tuple[float, float]) -> Waits:
    """Sums over (wait in s, age in half-lives)."""
    weights = [0.5**age for _, age in samples]
    xs = [wait for wait, _ in samples]
    return Waits(
        sum(weights),
        sum(w * x for w, x in zip(weights, xs, strict=True)),
        sum(w * x * x for w, x in zip(weights, xs, strict=True)),
    )


def test_the_upper_limit_of_a_wait_follows_students_t() -> None:
    waits = waits_of((100, 0), (200, 0), (300, 0))
    assert waits.mean_s == 200
    assert waits.upper_s == pytest.approx(200 + 81.6496580928 * 2.919986, rel=1e-6)


def test_older_jobs_count_less() -> None:
    assert waits_of((100, 0), (300, 1)).mean_s == pytest.approx(500 / 3)


@pytest.mark.parametrize("waits", [waits_of(), waits_of((100, 0)), waits_of(*[(100, 8)] * 100)])
def test_a_limit_is_not_made_up_from_too_little(waits: Waits) -> None:
    assert waits.upper_s is None


def test_equal_waits_have_no_spread() -> None:
    assert waits_of(*[(50, 0)] * 5).upper_s == pytest.approx(50)


@pytest.mark.parametrize(
    ("waits", "expected"),
    [
        (SiteWaits(3000, 1, 3500), HI),
        (SiteWaits(3000, 4, 3500), MID),
        (SiteWaits(3000, 3, 3500), MID),
        (SiteWaits(3000, 2, 3500), HI),
        (SiteWaits(3000, 1, 3500, active=False), MID),
        (SiteWaits(12_000), LO),
        (SiteWaits(5000, 1, 9000), MID),
        (SiteWaits(3600), MID),
        (SiteWaits(10_800), MID),
        (SiteWaits(10_801), LO),
        (SiteWaits(100, 2, 11_000), LO),
    ],
)
def test_class_of_a_queue(waits: SiteWaits, expected: SiteClass) -> None:
    assert site_class(waits, low_s=2500, high_s=9000) is expected


def test_what_is_usual_on_the_grid_moves_the_limits() -> None:
    sites = {f"S{number}": SiteWaits(5000.0 * number) for number in range(1, 11)}
    found = classify_sites(sites)
    assert [found[name] for name in sites] == [HI] * 3 + [MID] * 4 + [LO] * 3
    with_clouds = classify_sites({**sites, **{f"X{n}": SiteWaits(1e6, grid=False) for n in range(50)}})
    assert {name: with_clouds[name] for name in sites} == found
    assert classify_sites({}) == {}


@pytest.mark.parametrize(
    ("hi", "mid", "expected"),
    [(0, 0, A), (1000, 90_000, A), (1001, 0, B), (1001, 6999, B), (1001, 7000, C), (9000, 0, C)],
)
def test_class_of_a_user(hi: int, mid: int, expected: TaskClass) -> None:
    assert user_class(hi, mid, LIMITS) is expected


@pytest.mark.parametrize(
    ("of_user", "percent", "remaining", "express", "expected"),
    [
        (A, 90, 500, False, S),
        (A, 89.9, 500, False, A),
        (A, 90, 501, False, A),
        (A, 100, 0, False, A),
        (B, 95, 200, False, S),
        (B, 94.9, 200, False, B),
        (B, 95, 201, False, B),
        (B, 90, 1, False, B),
        (C, 99, 1, False, C),
        (C, 0, 1000, True, S),
    ],
)
def test_class_of_a_task(
    of_user: TaskClass, percent: float, remaining: int, express: bool, expected: TaskClass
) -> None:
    found = task_class(of_user, percent_done=percent, remaining=remaining, express=express, limits=LIMITS)
    assert found is expected


def test_slots_are_counted_by_class_and_unknown_queues_are_mid() -> None:
    found = slots_by_class([("H", 10), ("L", 3), ("?", 2), ("H", 5)], {"H": HI, "L": LO})
    assert found == {HI: 15, MID: 2, LO: 3}


def test_limits_come_from_the_configuration() -> None:
    assert TaskClassLimits.from_configuration(DEFAULTS) == LIMITS
    changed = DEFAULTS.having(Row("pandaserver", "analy_eval", "USER_USAGE_THRESHOLD_A", "50", "int"))
    assert TaskClassLimits.from_configuration(changed, vo="atlas").slots_a == 50
