"""Items of the parameters: what some of their keys change in the jobs of a task."""

from __future__ import annotations

from typing import Any

import pytest

from tasks_app.models import CatalogueFile
from tasks_app.params.faults import ParamErrors
from tasks_app.submission import submitting
from tests.flow.driving import add_dataset, add_files, dataset, inputs, jobs, parameters, reads, settle, status, submit
from tests.flow.pilot import Pilot, drive
from tests.flow.test_again import ADA
from tests.flow.test_containers import container, masters

pytestmark = pytest.mark.usefixtures("books")


@pytest.mark.parametrize("which", [{"files": ["lab.in.00001"]}, {"include": "1$"}, {"exclude": "0$,2$"}])
def test_files_that_an_item_names_are_the_only_ones(which: dict[str, Any]) -> None:
    add_dataset("lab.in", 3)
    made = submit(parameters("lab.t", reads("lab.in", **which), nFilesPerJob=1))
    drive(Pilot())
    assert [inputs(job.id) for job in jobs(made)] == [["lab.in.00001"]]


def test_files_in_random_order_are_not_those_at_the_front() -> None:
    add_dataset("lab.in", 60)
    made = submit(parameters("lab.t", reads("lab.in", random=True), nFiles=30, nFilesPerJob=30))
    drive(Pilot())
    (job,) = jobs(made)
    assert len(inputs(job.id)) == 30 and max(inputs(job.id)) > "lab.in.00030"


def test_a_container_is_one_input_when_its_datasets_are_read_as_one() -> None:
    container("lab.all/", "lab.a", "lab.b")
    made = submit(parameters("lab.t", reads("lab.all/", consolidate="user.ada.all/"), nFilesPerJob=5))
    drive(Pilot())
    assert status(made) == "done"
    assert masters(made) == [("lab.all/", 5, None)]
    assert [len(inputs(job.id)) for job in jobs(made)] == [5]


@pytest.mark.parametrize(("more", "files"), [({}, 3), ({"check": True}, 2)])
def test_files_that_the_parent_did_not_make_are_left_out_when_that_is_asked_for(
    more: dict[str, Any], files: int
) -> None:
    add_dataset("lab.in", 2)
    parent = submit(parameters("lab.p", reads("lab.in"), nFilesPerJob=1))
    drive(Pilot())
    add_files("lab.p.out", [77])
    made = submit(parameters("lab.t", reads("lab.p.out", **more), nFilesPerJob=1, parent_tid=parent), parent=parent)
    settle()
    assert dataset(made).files == files
    drive(Pilot())
    CatalogueFile.objects.filter(lfn="lab.p.out.00077").delete()


def test_an_input_that_data_management_does_not_have_is_refused_with_what_to_use() -> None:
    with pytest.raises(ParamErrors, match="pseudo_input") as caught:
        submitting.submit(submitting.check(parameters("lab.t", reads("lab.x", pseudo=True)), ADA), by="ada")
    assert [one.field for one in caught.value.errors if one.rule == "not available"] == ["jobParameters[0].pseudo"]
