import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.drawing import plots

GOOD = {
    "name": "mass",
    "title": "Mass",
    "xlabel": "m",
    "unit": "GeV",
    "edges": [0, 1, 2],
    "counts": [3, 4],
    "errors": [1, 2],
}


def test_a_histogram_is_read() -> None:
    (found,) = plots.read(json.dumps(GOOD).encode())
    assert (found.name, found.edges, found.counts, found.errors) == ("mass", (0.0, 1.0, 2.0), (3.0, 4.0), (1.0, 2.0))
    assert found.total == 7 and found.mean == pytest.approx((3 * 0.5 + 4 * 1.5) / 7)


def test_whole_counts_get_their_square_root_as_error() -> None:
    (found,) = plots.read(b'{"low": 0, "high": 2, "counts": [4, 9]}')
    assert found.errors == (2.0, 3.0)
    (weighted,) = plots.read(b'{"low": 0, "high": 2, "counts": [4.5, 9]}')
    assert weighted.errors == ()


def test_further_numbers_are_shown() -> None:
    text = '{"low": 0, "high": 1, "unit": "GeV", "counts": [1], "overflow": 7, "peak": {"value": 91.2, "error": 0.1}, "x": "y"}'
    (found,) = plots.read(text.encode())
    assert found.facts == (("overflow", "7"), ("peak", "91.2 ± 0.1 GeV"))


@pytest.mark.parametrize("wrapped", [[GOOD, GOOD], {"histograms": [GOOD, GOOD]}, {"a": GOOD, "b": GOOD}])
def test_several_histograms_are_read(wrapped: object) -> None:
    assert len(plots.read(json.dumps(wrapped).encode())) == 2


def test_bins_by_low_and_high() -> None:
    (found,) = plots.read(b'{"name": "n", "low": 0, "high": 3, "counts": [1, 2, 3]}')
    assert found.edges == (0.0, 1.0, 2.0, 3.0)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[1]", "not an object"),
        (b'{"counts": [1]}', "low and high"),
        (b'{"counts": [1], "edges": [0, NaN]}', "not a number"),
        (b'{"counts": [1], "edges": [0, "1"]}', "not a number"),
        (b'{"counts": [true], "edges": [0, 1]}', "not a number"),
        (b'{"counts": [1], "edges": [0, 1, 2]}', "one more edge"),
        (b'{"counts": [1], "edges": [1, 1]}', "do not increase"),
        (b'{"counts": [], "edges": [1]}', "0 bins"),
        (b'{"counts": [1], "edges": [0, 1], "errors": [-1]}', "non-negative"),
        (b'{"counts": [1e999], "edges": [0, 1]}', "not a number"),
    ],
)
def test_what_is_no_histogram_is_refused(content: bytes, fault: str) -> None:
    with pytest.raises(plots.HistogramError, match=fault):
        plots.read(content)


numbers = st.floats(-1e30, 1e30)


@given(counts=st.lists(numbers, min_size=1, max_size=30), low=st.floats(-1e6, 1e6), width=st.floats(1e-3, 1e6))
def test_a_drawing_stays_in_its_picture(counts: list[float], low: float, width: float) -> None:
    (found,) = plots.read(json.dumps({"counts": counts, "low": low, "high": low + width * len(counts)}).encode())
    drawing = plots.draw(found)
    points = [tuple(map(float, point.split(","))) for point in drawing.outline[1:].split(" L")]
    assert all(
        drawing.frame.left - 0.1 <= x <= drawing.frame.right + 0.1 and 0 <= y <= drawing.frame.bottom + 0.1
        for x, y in points
    )
    assert 1 <= len(drawing.x_ticks) <= 20 and 1 <= len(drawing.y_ticks) <= 20
