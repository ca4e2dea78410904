import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.cases.analysis_weights import (
    Candidate,
    Factors,
    data_weight,
    new,
    original,
    product,
    refined,
    running_number,
    size_factor,
)
from brokerage_app.policy.classes import SiteClass, TaskClass

HI, MID, LO = SiteClass.HI, SiteClass.MID, SiteClass.LO
S, A, B, C = TaskClass.S, TaskClass.A, TaskClass.B, TaskClass.C
FOUR = [Candidate("S1", 60, HI), Candidate("S2", 40, HI), Candidate("S3", 100, MID), Candidate("S4", 50, LO)]


def weights(found: dict[str, Factors]) -> list[float]:
    return [product(found[site]) for site in sorted(found)]


def test_original() -> None:
    assert product(original(50, 30 + 5 + 3 + 2)) == pytest.approx(1.243902, abs=1e-6)
    assert product(original(0, 0)) == 1


def test_new_without_classes() -> None:
    found = new(FOUR, jobs=80, of_class=None)
    assert [dict(found[site])["part of the user's room"] for site in sorted(found)] == pytest.approx(
        [0.235294, 0.117647, 0.470588, 0.176471], abs=1e-6
    )
    assert weights(found) == pytest.approx([18.823529, 9.411765, 37.647059, 14.117647], abs=1e-6)


@pytest.mark.parametrize(
    ("of_class", "best", "worst"),
    [(S, {"S1", "S2"}, "S4"), (A, {"S1", "S2"}, "S4"), (B, {"S3"}, "S2"), (C, {"S4"}, "S2")],
)
def test_new_prefers_the_queues_of_the_class_that_fits(of_class: TaskClass, best: set[str], worst: str) -> None:
    found = {site: product(factors) for site, factors in new(FOUR, jobs=80, of_class=of_class).items()}
    ordered = sorted(found, key=lambda site: -found[site])
    assert set(ordered[: len(best)]) == best
    assert ordered[-1] == worst
    assert all(weight > 0 for weight in found.values())


def test_new_where_the_jobs_need_more_room_than_there_is() -> None:
    assert weights(new([Candidate("S1", 30), Candidate("S2", 10)], jobs=80, of_class=None)) == pytest.approx([60, 20])
    assert weights(new([Candidate("S1", -3), Candidate("S2", 0)], jobs=80, of_class=None)) == pytest.approx([40, 40])


@pytest.mark.parametrize(
    ("of_class", "expected"),
    [
        (A, [79.844338, 0.318756, 0.050001, 0.002001]),
        (S, [79.844338, 0.318756, 0.050001, 0.002001]),
        (B, [None, None, 79.900001, 0.100001]),
        (C, [None, None, None, 80.000001]),
        (None, [18.823530, 9.411766, 37.647060, 14.117648]),
    ],
)
def test_refined(of_class: TaskClass | None, expected: list[float | None]) -> None:
    found = weights(refined(FOUR, jobs=80, of_class=of_class))
    for value, wanted in zip(found, expected, strict=True):
        assert wanted is None or value == pytest.approx(wanted, abs=1.5e-6)


def test_refined_for_merge_jobs_goes_by_room() -> None:
    found = weights(refined([Candidate("S1", 30), Candidate("S2", 10)], jobs=8, of_class=None, merging=True))
    assert found == pytest.approx([6, 2], rel=1e-5)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({"running": 50, "batch_jobs": 500}, 50),
        ({"running": 5, "batch_jobs": 12}, 12),
        ({"running": 5, "batch_jobs": 500}, 20),
        ({"running": 5, "batch_jobs": 500, "has_pilots": False}, 5),
        ({"running": 5, "slots": 100, "cores": 8}, 12),
        ({"running": 5, "slots": 100}, 100),
        ({"running": 500, "slots": 100}, 500),
        ({"running": 5, "slots": 0, "starting": 30}, 30),
        ({"running": 5, "slots": 100, "starting": 300}, 100),
    ],
)
def test_the_largest_running_number_counts(numbers: dict[str, int], expected: int) -> None:
    assert running_number(**numbers) == expected  # type: ignore[arg-type]


def test_input_that_is_there() -> None:
    assert size_factor(50 * 1024, 0) == 6
    assert size_factor(0, 500 * 1024) == 1.5
    assert size_factor(1, 500 * 1024) == 1
    assert size_factor(1023, 0) == 1
    assert data_weight(2, 1) == 2.001


candidates = st.lists(
    st.builds(
        Candidate, st.integers(0, 30).map(lambda n: f"S{n:02}"), st.floats(-1000, 1000), st.sampled_from(SiteClass)
    ),
    min_size=1,
    unique_by=lambda one: one.site,
)


@given(candidates=candidates, jobs=st.integers(0, 5000), of_class=st.none() | st.sampled_from(TaskClass))
def test_weights_are_finite_and_never_negative(
    candidates: list[Candidate], jobs: int, of_class: TaskClass | None
) -> None:
    for found in (
        new(candidates, jobs=jobs, of_class=of_class),
        refined(candidates, jobs=jobs, of_class=of_class),
        refined(candidates, jobs=jobs, of_class=of_class, merging=True),
    ):
        assert set(found) == {one.site for one in candidates}
        assert all(math.isfinite(product(factors)) and product(factors) >= 0 for factors in found.values())


@given(candidates=candidates, jobs=st.integers(1, 5000), of_class=st.none() | st.sampled_from(TaskClass))
def test_more_room_never_weighs_less_within_a_class(
    candidates: list[Candidate], jobs: int, of_class: TaskClass | None
) -> None:
    for found in (new(candidates, jobs=jobs, of_class=of_class), refined(candidates, jobs=jobs, of_class=of_class)):
        for one in candidates:
            for other in candidates:
                if one.site_class is other.site_class and one.room >= other.room:
                    assert product(found[one.site]) >= product(found[other.site]) - 1e-9
