"""Which bytes a request asks for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.ddm.rules.byteranges import NoSuchRangeError, wanted


@pytest.mark.parametrize(
    ("header", "part"),
    [
        ("bytes=0-0", (0, 1)),
        ("bytes=2-4", (2, 5)),
        ("bytes=4-", (4, 10)),
        ("bytes=-3", (7, 10)),
        ("bytes=-99", (0, 10)),
        ("bytes=8-99", (8, 10)),
        ("bytes= 1 - 2 ", (1, 3)),
        # not one range of bytes: all is sent
        (None, None),
        ("", None),
        ("bytes=", None),
        ("bytes=-", None),
        ("bytes=1-2,4-5", None),
        ("lines=1-2", None),
        ("bytes=5-2", None),
        ("bytes=a-b", None),
        ("bytes=٣-", None),
        ("bytes=" + "1" * 200 + "-", None),
    ],
)
def test_one_range_is_a_part_and_anything_else_is_all(header: str | None, part: tuple[int, int] | None) -> None:
    assert wanted(header, 10) == part


@pytest.mark.parametrize(
    ("header", "size"),
    [("bytes=10-", 10), ("bytes=99-100", 10), ("bytes=-0", 10), ("bytes=99999999999999999999-", 10), ("bytes=0-", 0)],
)
def test_a_range_without_bytes_is_refused(header: str, size: int) -> None:
    with pytest.raises(NoSuchRangeError, match=f"{size} bytes"):
        wanted(header, size)


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.integers(1, 10**12))
def test_a_part_lies_within_the_file(first: int, last: int, size: int) -> None:
    try:
        part = wanted(f"bytes={first}-{last}", size)
    except NoSuchRangeError:
        assert first >= size
    else:
        assert part is None if last < first else part == (first, min(last + 1, size))
