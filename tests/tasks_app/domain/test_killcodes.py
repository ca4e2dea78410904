from __future__ import annotations

import pytest

from tasks_app.domain.killcodes import KILL_CODES, KilledJob, When, kill_code, kill_result, may_kill
from tasks_app.domain.states import JOB_FINAL, JobStatus

J = JobStatus


@pytest.mark.parametrize(
    ("code", "status", "sub_status"),
    [
        (None, J.CANCELLED, None),
        (12345, J.CANCELLED, None),
        (2, J.CLOSED, "toreassign"),
        (3, J.CANCELLED, None),
        (4, J.CLOSED, "toreassign"),
        (7, J.CANCELLED, None),
        (8, J.CANCELLED, None),
        (9, J.CANCELLED, None),
        (10, J.CLOSED, None),
        (50, J.CANCELLED, None),
        (51, J.CLOSED, "toreassign"),
        (52, J.CANCELLED, None),
        (55, J.CLOSED, "taskdone"),
        (60, J.CLOSED, None),
        (91, J.CANCELLED, None),
        (99, J.CANCELLED, None),
    ],
)
def test_each_code_has_its_result(code: int | None, status: JobStatus, sub_status: str | None) -> None:
    result = kill_result(code, KilledJob(J.ACTIVATED))
    assert (result.when, result.status, result.sub_status) == (When.NOW, status, sub_status)


def test_the_worker_that_did_nothing_keeps_its_own_word() -> None:
    assert kill_code(60).keeps_sub_status


@pytest.mark.parametrize(
    ("code", "job", "production_role", "when"),
    [
        (50, KilledJob(J.RUNNING, "managed"), False, When.NEXT_HEARTBEAT),
        (51, KilledJob(J.HOLDING, "managed"), False, When.NEXT_HEARTBEAT),
        (9, KilledJob(J.RUNNING, "managed"), False, When.NOW),
        (52, KilledJob(J.RUNNING, "rc_test2"), False, When.NOW),
        (9, KilledJob(J.RUNNING, "user"), True, When.NEXT_HEARTBEAT),
        (99, KilledJob(J.RUNNING, "user"), True, When.NOW),
        (99, KilledJob(J.RUNNING, "user"), False, When.NEXT_HEARTBEAT),
        (None, KilledJob(J.MERGING, "user"), False, When.NOW),
        (None, KilledJob(J.RUNNING, "managed", event_service=True), False, When.NOW),
        (None, KilledJob(J.THROTTLED, "user"), False, When.NOW),
    ],
)
def test_running_jobs_are_told_to_stop_unless_forced(
    code: int | None, job: KilledJob, production_role: bool, when: When
) -> None:
    assert kill_result(code, job, production_role=production_role).when == when


@pytest.mark.parametrize("code", sorted(KILL_CODES))
def test_a_job_that_has_ended_stays_as_it_is(code: int) -> None:
    for status in JOB_FINAL:
        result = kill_result(code, KilledJob(status))
        assert (result.when, result.status) == (When.NEVER, status)


def test_unmerged_jobs_can_be_kept() -> None:
    assert kill_result(50, KilledJob(J.MERGING), keep_unmerged=True).when == When.NEVER


def test_every_result_is_a_final_state() -> None:
    assert {row.status for row in KILL_CODES.values()} <= JOB_FINAL


@pytest.mark.parametrize(
    ("code", "owner", "role", "analysis", "allowed"),
    [
        (None, True, False, True, True),
        (None, False, False, True, False),
        (None, False, True, True, False),
        (91, False, True, True, True),
        (None, False, True, False, True),
    ],
)
def test_who_may_kill(code: int | None, owner: bool, role: bool, analysis: bool, allowed: bool) -> None:
    assert may_kill(code, owner=owner, production_role=role, analysis=analysis) is allowed
