"""Reasons of failures: which ones an error has, and by which limit it counts."""

from __future__ import annotations

import pytest

from tasks_app.domain.failure_reasons import REASONS, history_of, is_reason, limited_as, reasons_of
from tasks_app.domain.job_errors import JobError
from tasks_app.domain.retry_rules import ENDED_WITH_SERVICE, GIVEN_UP

LOOPING = JobError("pilot", "1150")


@pytest.mark.parametrize(
    ("error", "reasons"),
    [
        (LOOPING, ("looping", "time", "any")),
        (JobError("pilot", "1213"), ("time", "any")),
        (JobError("pilot", "1212"), ("memory", "any")),
        (JobError("pilot", "1099"), ("stage-in", "any")),
        (JobError("pilot", "1137"), ("stage-out", "any")),
        (JobError("pilot", "1165"), ("missing output", "stage-out", "any")),
        (JobError("pilot", "1098"), ("disk", "any")),
        (JobError("jobdispatcher", "100"), ("platform failure", "lost", "any")),
        (JobError("exe", "14"), ("exit 14", "payload", "any")),
        (JobError("exe", "139"), ("exit 139", "seg fault", "payload", "any")),
        (JobError("trans", "-11"), ("exit -11", "seg fault", "payload", "any")),
        (JobError("taskbuffer", "300"), ("system", "any")),
        (None, ("unknown", "any")),
    ],
)
def test_an_error_has_its_category_and_narrower_reasons(error: JobError | None, reasons: tuple[str, ...]) -> None:
    assert reasons_of(error) == reasons
    assert all(map(is_reason, reasons))


def test_reasons_are_these_and_exit_codes() -> None:
    assert all(map(is_reason, (*REASONS, "exit 14", "exit -11")))
    assert not any(map(is_reason, ("loop", "exit", "exit 0", "exit 14 ", "Looping", "exit x")))


def test_a_failure_counts_by_the_narrowest_reason_that_has_a_limit() -> None:
    assert limited_as([LOOPING], {"looping": 1, "time": 2, "any": 3}) == "looping"
    assert limited_as([LOOPING], {"time": 2, "any": 3}) == "time"
    assert limited_as([LOOPING], {"memory": 1}) == "any"
    assert limited_as([], {"memory": 1}) == "any"
    ended = [
        [JobError("pilot", "1201")],
        *([JobError("jobdispatcher", "100", f"{said} by ada")] for said in (GIVEN_UP, ENDED_WITH_SERVICE)),
    ]
    assert [limited_as(errors, {"platform failure": 0, "any": 0}) for errors in ended] == ["", "", ""]
    other = [JobError("exe", "3")]
    assert history_of([[LOOPING], other, [LOOPING], *ended], {"looping": 1}) == {"looping": 2, "any": 1}
