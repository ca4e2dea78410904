from __future__ import annotations

import pytest

from tasks_app.params.dataset_attributes import Attributes, attributes_of
from tasks_app.params.faults import Faults
from tasks_app.params.items import parse_item
from tests.tasks_app.params import dictionaries as d


def column(**fields: object) -> str:
    item = parse_item(d.template("input", "${X}", "a", **fields), "item", Faults())
    assert item is not None
    return attributes_of(item)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, ""),
        ({"attributes": "repeat, nosplit"}, "repeat,nosplit"),
        ({"ratio": 2, "offset": 7}, "of=7,ratio=2"),
        ({"ratio": 0.25, "reusable": True, "random": True}, "rd,ru,ratio=0.25"),
        ({"attributes": "ratio=3", "ratio": 5}, "ratio=3"),
        ({"nFilesPerJob": 2, "eventRatio": 1.5, "num_records": 30}, "er=1.5,np=2,nr=30"),
        ({"transient": False, "allowNoOutput": True}, "an,tr=0"),
        ({"offset": 0, "hidden": True}, ""),
    ],
)
def test_fields_become_tokens(fields: dict[str, object], text: str) -> None:
    assert column(**fields) == text


def test_the_column_can_be_read_back() -> None:
    read = Attributes.parse(column(attributes="repeat", ratio=0.25, offset=7, nFilesPerJob=2))
    assert "repeat" in read and "nosplit" not in read
    assert (read.ratio, read.offset, read.whole("np"), read.whole("nr")) == (0.25, 7, 2, None)


def test_an_empty_column_has_one_file_for_each_of_the_master() -> None:
    assert (Attributes.parse(None).ratio, Attributes.parse("").offset) == (1.0, 0)


@pytest.mark.parametrize(
    ("text", "tracked"), [("", True), ("repeat", True), ("nosplit", True), ("repeat,nosplit", False), ("ru", False)]
)
def test_files_that_every_job_may_get_are_not_tracked(text: str, tracked: bool) -> None:
    assert Attributes.parse(text).keeps_track is tracked


def test_values_that_are_no_numbers_are_kept_as_they_are() -> None:
    assert "os=root^x" in Attributes.parse("os=root^x")
