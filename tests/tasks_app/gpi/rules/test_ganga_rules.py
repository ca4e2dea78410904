"""Worked examples of Ganga's rules, and the whole table of states of masters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.gpi.rules import cuts
from tasks_app.gpi.rules.job_ids import parse_id, written_id
from tasks_app.gpi.rules.master_status import FINAL, STATUSES, master_status, subjob_status
from tasks_app.gpi.rules.submissions import in_bulk, one_by_one

GROUPS = {
    "A": ("submitting", "submitted"),
    "B": ("running", "completing"),
    "F": "failed",
    "C": "completed",
    "K": "killed",
}


def sets() -> list[frozenset[str]]:
    return [frozenset(some) for some in chain.from_iterable(combinations("ABFCK", n) for n in range(1, 6))]


def states_of(group: frozenset[str]) -> list[list[str]]:
    """The states that the letters stand for: with the transitory ones, and without."""
    return [[g if isinstance(g := GROUPS[one], str) else g[which] for one in sorted(group)] for which in (0, 1)]


def expected(group: frozenset[str], running_first: bool) -> str:
    for letter in "BAFC" if running_first else "ABFC":
        if letter in group:
            return {"A": "submitted", "B": "running", "F": "failed", "C": "completed"}[letter]
    return "killed"


@pytest.mark.parametrize("running_first", [False, True])
@pytest.mark.parametrize("group", sets(), ids=lambda group: "".join(sorted(group)))
def test_a_master_has_the_state_of_the_table(group: frozenset[str], running_first: bool) -> None:
    for states in states_of(group):
        assert master_status(states, running_first=running_first) == expected(group, running_first)
        assert master_status([*states, "new"], running_first=running_first) == expected(group, running_first)


def test_the_table_has_as_many_rows_of_each_state_as_the_design_says() -> None:
    counted = [Counter(master_status(states_of(g)[1], running_first=first) for g in sets()) for first in (False, True)]
    rest = {"failed": 4, "completed": 2, "killed": 1}
    assert counted == [{"submitted": 16, "running": 8, **rest}, {"running": 16, "submitted": 8, **rest}]
    differ = [g for g in sets() if len({master_status(states_of(g)[1], running_first=f) for f in (False, True)}) == 2]
    assert len(differ) == 8 and all({"A", "B"} <= group for group in differ)


@pytest.mark.parametrize(
    ("states", "first", "swapped"),
    [
        (["completed", "failed", "submitted"], "submitted", "submitted"),  # G4
        (["completed", "running", "failed"], "running", "running"),  # G5
        (["completed", "completed", "killed"], "completed", "completed"),  # G6
        (["failed", "killed", "completed"], "failed", "failed"),  # G7
        (["submitting", "running"], "submitted", "running"),  # G8
        (["new", "new"], "new", "new"),
        ([], "new", "new"),
    ],
)
def test_worked_examples_of_masters(states: list[str], first: str, swapped: str) -> None:
    assert (master_status(states), master_status(states, running_first=True)) == (first, swapped)


def test_a_failed_subjob_that_is_resubmitted_takes_its_master_with_it() -> None:
    """G9: from completed, or from what it was, directly to submitted."""
    assert master_status(["completed", "failed"]) == "failed"
    assert master_status(["completed", "submitted"]) == "submitted"


@given(st.lists(st.sampled_from(STATUSES), min_size=1))
def test_masters_are_never_in_a_transitory_state(states: list[str]) -> None:
    assert master_status(states) not in ("submitting", "completing")
    assert master_status(states) == master_status(states[::-1] * 2)


def test_a_word_that_is_no_state_is_refused() -> None:
    with pytest.raises(ValueError, match="done is not the state of a subjob"):
        master_status(["done"])


@pytest.mark.parametrize(
    ("file", "job", "given_up", "final", "broken", "status"),
    [
        ("ready", None, False, False, False, "submitted"),
        ("pending", None, False, False, False, "submitted"),
        ("running", "activated", False, False, False, "submitted"),
        ("running", "starting", False, False, False, "submitted"),
        ("running", "running", False, False, False, "running"),
        ("running", "transferring", False, False, False, "completing"),
        ("finished", "finished", False, True, False, "completed"),
        ("ready", "failed", False, False, False, "submitted"),
        ("ready", "failed", True, False, False, "failed"),
        ("ready", "failed", False, True, False, "failed"),
        ("ready", "cancelled", True, False, False, "killed"),
        ("ready", None, True, False, False, "killed"),
        ("ready", None, False, True, False, "killed"),
        ("ready", None, False, True, True, "failed"),
        ("lost", None, False, False, False, "failed"),
        ("removed", "failed", False, False, False, "killed"),
    ],
)
def test_a_subjob_has_the_state_of_its_file_and_its_last_job(
    file: str, job: str | None, given_up: bool, final: bool, broken: bool, status: str
) -> None:
    assert subjob_status(file, job, given_up=given_up, task_is_final=final, task_is_broken=broken) == status
    if final:
        assert status in FINAL


def sizes(found: list[list[int]]) -> list[int]:
    return [len(one) for one in found]


@pytest.mark.parametrize(
    ("cut", "found"),
    [
        (lambda: cuts.in_slices(range(12), 5, -1), [5, 5, 2]),  # G13
        (lambda: cuts.in_slices(range(12), 5, 7), [5, 5]),
        (lambda: cuts.in_slices(range(12), 5, 11), [5, 5, 2]),
        (lambda: cuts.by_files(range(23), 10, 15), [10, 5]),  # G14
        (lambda: cuts.by_files(range(23), 10), [10, 10, 3]),
        (lambda: cuts.by_number_of_jobs(range(11), 3), [5, 5, 1]),  # G16
        (lambda: cuts.by_number_of_jobs(range(10), 3), [5, 5, 0]),
        (lambda: cuts.by_number_of_jobs(range(9), 3), [3, 3, 3]),
        (lambda: cuts.by_number_of_jobs(range(2), 3), [1, 1]),
        (lambda: cuts.by_number_of_files(range(7), 3), [3, 3, 1]),
        (lambda: cuts.by_number_of_files(range(2), 3), [1, 1]),
        (lambda: cuts.by_files([], 3), []),
    ],
)
def test_files_are_cut_as_the_splitters_cut_them(cut: Callable[[], list[list[int]]], found: list[int]) -> None:
    assert sizes(cut()) == found
    assert [n for one in cut() for n in one] == list(range(sum(found)))


def test_events_follow_each_other() -> None:
    """G15."""
    assert cuts.first_events(200, 4, 1000) == [1001, 1201, 1401, 1601]
    assert cuts.first_events(5, 3) == [1, 6, 11]


@pytest.mark.parametrize(
    "cut",
    [
        lambda: cuts.by_files([1], 0),
        lambda: cuts.by_files([1], 1, 0),
        lambda: cuts.in_slices([1], -1),
        lambda: cuts.by_number_of_jobs([1], -1),
        lambda: cuts.by_number_of_files([1], -1),
        lambda: cuts.first_events(0, 1),
        lambda: cuts.first_events(1, 1, -5),
    ],
)
def test_numbers_that_cut_nothing_are_refused(cut: Callable[[], object]) -> None:
    with pytest.raises(cuts.CutError, match="must be"):
        cut()


def test_ids_have_three_forms() -> None:
    """G3."""
    assert parse_id(4) == parse_id("4") == parse_id((4,)) == (4,)
    assert parse_id((4, 2)) == parse_id("4.2") == parse_id([4, 2]) == (4, 2)
    assert written_id((4, 2)) == "4.2"
    assert parse_id("my*job") is None and parse_id("4.2.1") is None
    for wrong in ((), (1, 2, 3), (-1,), ("4", 2), True):
        with pytest.raises(ValueError, match="is not the id of a job"):
            parse_id(wrong)  # type: ignore[arg-type]


OK, NO = True, False


@pytest.mark.parametrize(
    ("results", "keep_going", "statuses", "is_error", "master"),
    [
        ((OK, OK, OK), False, "sss", False, "submitted"),
        ((OK, NO, OK), False, "snn", True, "submitted"),  # G10
        ((NO, OK, OK), False, "nnn", True, "new"),
        ((NO, NO, NO), False, "nnn", True, "new"),
        ((OK, OK, OK), True, "sss", False, "submitted"),
        ((OK, NO, OK), True, "sns", False, "submitted"),
        ((NO, OK, OK), True, "nss", False, "submitted"),
        ((NO, NO, NO), True, "nnn", False, "new"),  # G11
    ],
)
def test_submission_one_by_one(
    results: tuple[bool, ...], keep_going: bool, statuses: str, is_error: bool, master: str
) -> None:
    tried: list[int] = []

    def call(number: int, taken: bool) -> Callable[[], bool]:
        return lambda: (tried.append(number), taken)[1]

    found = one_by_one([call(n, taken) for n, taken in enumerate(results)], keep_going=keep_going)
    assert "".join(status[0] for status in found.statuses) == statuses
    assert (found.is_error, found.is_taken_back, found.master) == (is_error, master == "new", master)
    last = len(results) if keep_going or all(results) else results.index(NO) + 1
    assert tried == list(range(last)), "who comes after the first failure is tried with keep_going only"


@pytest.mark.parametrize("keep_going", [False, True])
def test_submission_in_bulk(keep_going: bool) -> None:
    """G12."""
    found = in_bulk([OK, OK, NO, OK, NO], keep_going=keep_going)
    assert Counter(found.statuses) == {"submitted": 3, "failed": 2}
    assert (found.is_error, found.master) == (not keep_going, "submitted")
