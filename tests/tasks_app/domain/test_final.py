from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.domain.final import Books, completeness, error_summary, final_verdict, goal_reached
from tasks_app.domain.job_errors import JobError
from tasks_app.domain.states import TaskStatus

T = TaskStatus


@pytest.mark.parametrize(
    ("books", "status", "code"),
    [
        (Books(10, 10), T.DONE, "task_all_done"),
        (Books(10, 9), T.FINISHED, "task_some_done"),
        (Books(10, 0), T.FAILED, "task_none_done"),
        (Books(0, 0), T.FAILED, "task_none_done"),
        (Books(0, 0, allow_empty=True), T.DONE, "task_all_done"),
        (Books(0, 0, removed="all of its input was removed by ada"), T.FAILED, "task_none_done"),
        (Books(0, 0, removed="all of its input was removed by ada", allow_empty=True), T.DONE, "task_all_done"),
        (Books(10, 0, allow_empty=True), T.FAILED, "task_none_done"),
        (Books(10, 10, "done"), T.DONE, "task_all_done"),
        (Books(10, 10, "running"), T.FINISHED, "task_parent_incomplete"),
        (Books(10, 10, "finished"), T.FINISHED, "task_parent_incomplete"),
        (Books(10, 10, "failed"), T.FAILED, "task_parent_incomplete"),
        (Books(10, 10, "broken"), T.FAILED, "task_parent_incomplete"),
        (Books(10, 10, "aborted"), T.FAILED, "task_parent_incomplete"),
        (Books(10, 10, "running", reads_parent=False), T.FINISHED, "task_parent_not_done"),
        (Books(10, 10, "aborted", reads_parent=False), T.FAILED, "task_parent_not_done"),
        (Books(10, 10, "done", reads_parent=False), T.DONE, "task_all_done"),
        (Books(10, 9, "aborted"), T.FINISHED, "task_some_done"),
        (Books(10, 10, "done", mutable=True), T.FINISHED, "task_parent_incomplete"),
        # FG: below the goal, the whole input without one, the task has failed
        (Books(10, 9, fail_unreached=True), T.FAILED, "task_goal_missed"),
        (Books(10, 9, goal=900, fail_unreached=True), T.FINISHED, "task_some_done"),
        (Books(1000, 899, goal=900, fail_unreached=True), T.FAILED, "task_goal_missed"),
        (Books(10, 10, fail_unreached=True), T.DONE, "task_all_done"),
        # events of processed files that were given up
        (Books(2, 2, events=50, events_used=40, given_up=10), T.FINISHED, "task_events_given_up"),
        (Books(2, 1, events=50, events_used=20, given_up=5), T.FINISHED, "task_some_done"),
        (Books(2, 2, "failed", events=50, events_used=40, given_up=10), T.FINISHED, "task_events_given_up"),
        (Books(2, 2, events=50, events_used=40, given_up=10, fail_unreached=True), T.FAILED, "task_goal_missed"),
        (
            Books(2, 2, events=50, events_used=40, given_up=10, goal=800, use_exhausted=True),
            T.FINISHED,
            "task_events_given_up",
        ),
        # UX: it waits for somebody, who may tell it to finish
        (Books(10, 9, use_exhausted=True), T.EXHAUSTED, "task_goal_missed"),
        (Books(10, 9, goal=900, use_exhausted=True), T.FINISHED, "task_some_done"),
        (Books(10, 9, use_exhausted=True, passed=True), T.FINISHED, "task_some_done"),
        (Books(10, 0, use_exhausted=True), T.FAILED, "task_none_done"),
        (Books(10, 9, use_exhausted=True, fail_unreached=True), T.EXHAUSTED, "task_goal_missed"),
        (Books(10, 9, use_exhausted=True, fail_unreached=True, passed=True), T.FAILED, "task_goal_missed"),
        # events count before files
        (Books(10, 9, events=1000, events_used=960, goal=950, fail_unreached=True), T.FINISHED, "task_some_done"),
        (Books(10, 9, events=1000, events_used=940, goal=950, fail_unreached=True), T.FAILED, "task_goal_missed"),
    ],
)
def test_how_a_task_ends(books: Books, status: TaskStatus, code: str) -> None:
    verdict = final_verdict(books)
    assert (verdict.status, verdict.reason.code) == (status, code)
    assert final_verdict(books).status == status


def test_completeness_is_rounded_down() -> None:
    assert completeness(Books(3, 2)) == 666
    assert completeness(Books(1000, 999)) == 999
    assert completeness(Books(0, 0)) == 0
    assert completeness(Books(10, 5, events=100, events_used=10)) == 100
    assert goal_reached(Books(10, 10)) and not goal_reached(Books(10, 9)) and goal_reached(Books(10, 0, goal=0))


def test_the_sentence_has_the_numbers() -> None:
    assert final_verdict(Books(8, 7, goal=950, use_exhausted=True)).reason.detail == (
        "87.5 % of the input was processed, the goal is 95 %"
    )


def test_errors_in_one_sentence() -> None:
    assert error_summary([], "failed") is None
    assert error_summary([(JobError("pilot", "1"), 1)], "done") == (
        "1 attempt failed: 1 × pilot:1 (no text); all files were processed in the end"
    )
    ended = JobError("pilot", "1305", "Failed to execute payload for run 7.")
    many = [(JobError("pilot", str(code)), 9 - code) for code in range(8)]
    assert (error_summary(many, "failed") or "").startswith("44 attempts failed: 9 × pilot:0 (the last: no text); ")
    assert (error_summary(many, "failed") or "").endswith("; 5 × pilot:4 (the last: no text); 9 × other errors")
    assert (error_summary([(ended, 1)], "failed", 1) or "").startswith(
        "1 attempt failed to merge outputs: 1 × pilot:1305"
    )
    assert (error_summary([(ended, 3)], "failed", 2) or "").startswith(
        "3 attempts failed, 2 of them to merge outputs: 3"
    )
    assert (error_summary([(ended, 3)], "failed", 3) or "").startswith(
        "3 attempts failed, all of them to merge outputs"
    )
    said = error_summary([(ended, 2)], "failed")
    assert said == "2 attempts failed: 2 × pilot:1305 (the last: Failed to execute payload for run 7)"


@given(
    files=st.integers(0, 50),
    data=st.data(),
    parent=st.none() | st.sampled_from(["done", "finished", "running", "failed"]),
    mutable=st.booleans(),
    goal=st.none() | st.integers(0, 1000),
    flags=st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
def test_every_task_ends_and_done_means_everything(
    files: int, data: st.DataObject, parent: str | None, mutable: bool, goal: int | None, flags: tuple[bool, bool, bool]
) -> None:
    finished = data.draw(st.integers(0, files))
    books = Books(files, finished, parent, mutable, 0, 0, goal, *flags)
    status = final_verdict(books).status
    assert status in (T.DONE, T.FINISHED, T.FAILED, T.EXHAUSTED)
    if status == T.DONE:
        assert finished == files and parent in (None, "done")
    if status == T.EXHAUSTED:
        assert books.use_exhausted and not books.passed and finished > 0
    assert status == T.FAILED or finished > 0
