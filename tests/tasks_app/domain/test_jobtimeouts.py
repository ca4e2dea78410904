from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.domain.job_timeouts import TIMEOUTS, Do, JobView, QueueView, TimeoutSettings, timeout_of
from tasks_app.domain.states import JOB_FINAL, JOB_OPEN, JobStatus

J = JobStatus
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
AWAKE = QueueView("SITE_A", last_start=NOW)


def aged(status: JobStatus, age: timedelta, label: str = "managed", **more: object) -> JobView:
    """A job all of whose times are `age` ago, at a queue that starts jobs."""
    moment = NOW - age
    values: dict[str, object] = {"queue": AWAKE, **more}
    return JobView(1, status, moment, moment, moment, label, **values)  # type: ignore[arg-type]


def minutes(value: float) -> timedelta:
    return timedelta(minutes=value)


def hours(value: float) -> timedelta:
    return timedelta(hours=value)


def days(value: float) -> timedelta:
    return timedelta(days=value)


@pytest.mark.parametrize(
    ("status", "label", "limit", "more", "rule", "kill"),
    [
        (J.PENDING, "managed", hours(1), {}, "pending", 4),
        (J.PENDING, "user", hours(1), {}, "pending", 4),
        (J.WAITING, "managed", minutes(30), {}, "waiting", 4),
        (J.DEFINED, "managed", hours(4), {}, "defined", 51),
        (J.DEFINED, "test", hours(4), {}, "defined", 51),
        (J.DEFINED, "panda", hours(4), {"build": True}, "build_defined", 2),
        (J.DEFINED, "install", days(7), {}, "before_activation", 2),
        (J.ASSIGNED, "managed", hours(12), {}, "assigned", 51),
        (J.ASSIGNED, "install", days(7), {}, "before_activation", 2),
        (J.ACTIVATED, "managed", days(2), {}, "activated", 51),
        (J.STARTING, "managed", hours(2), {}, "heartbeat", None),
        (J.ACTIVATED, "install", days(7), {}, "activated_others", 2),
        (J.THROTTLED, "user", days(7), {}, "throttled", 2),
        (J.SENT, "user", minutes(30), {}, "sent", None),
        (J.RUNNING, "managed", hours(2), {}, "heartbeat", None),
        (J.RUNNING, "user", hours(2), {}, "heartbeat", None),
        (J.HOLDING, "user", hours(3), {}, "holding_analysis", None),
        (J.HOLDING, "managed", hours(3), {"priority": 800}, "holding_urgent", None),
        (J.HOLDING, "managed", hours(48), {"priority": 799}, "holding", None),
        (J.TRANSFERRING, "managed", days(2), {"priority": 800}, "transferring_urgent", None),
        (J.TRANSFERRING, "managed", days(6), {"priority": 799}, "transferring", None),
        (J.TRANSFERRING, "managed", hours(2), {"own_stage_out": True}, "own_transfer", None),
        (J.TRANSFERRING, "user", hours(2), {"priority": 900}, "transfer_check", None),
        (J.ACTIVATED, "user", hours(12), {}, "analysis", 51),
        (J.ASSIGNED, "user", hours(12), {}, "analysis", 51),
        (J.ACTIVATED, "managed", minutes(30), {"orphan_merge": True, "merge": True}, "orphan_merge", 52),
    ],
)
def test_each_time_out_at_its_limit(
    status: JobStatus, label: str, limit: timedelta, more: dict[str, object], rule: str, kill: int | None
) -> None:
    assert timeout_of(aged(status, limit - SECOND, label, **more), NOW) is None
    found = timeout_of(aged(status, limit, label, **more), NOW)
    assert found is not None
    assert (found.rule, found.kill) == (rule, kill)
    assert (found.do == Do.FAIL) == (found.error is not None)


def test_the_longest_limits_are_for_jobs_that_show_signs_of_life() -> None:
    old = replace(aged(J.RUNNING, days(21)), heartbeat_at=NOW)
    found = timeout_of(old, NOW)
    assert found and (found.rule, found.kill) == ("running", 2)
    assert timeout_of(replace(old, status_since=NOW - days(20)), NOW) is None
    starting = replace(aged(J.STARTING, days(2)), heartbeat_at=NOW)
    found = timeout_of(starting, NOW)
    assert found and found.rule == "activated"
    analysis = replace(aged(J.RUNNING, days(7), "user"), heartbeat_at=NOW)
    found = timeout_of(analysis, NOW)
    assert found and (found.rule, found.kill) == ("active_analysis", 2)


@pytest.mark.parametrize(
    ("queue", "kind", "label", "ends"),
    [
        (QueueView(last_start=NOW - hours(2)), "evgen", "managed", True),
        (QueueView(last_start=NOW - hours(2)), "simul", "test", True),
        (QueueView(last_start=NOW - hours(1.9)), "simul", "managed", False),
        (QueueView(last_start=NOW - hours(2)), "reco", "managed", False),
        (QueueView(last_start=NOW - hours(2)), "evgen", "user", False),
        (QueueView(last_start=None), "evgen", "managed", False),
    ],
)
def test_jobs_that_read_little_leave_queues_that_start_none_after_six_hours(
    queue: QueueView, kind: str, label: str, ends: bool
) -> None:
    job = replace(aged(J.ACTIVATED, hours(6), label, queue=queue), processing_type=kind)
    found = timeout_of(job, NOW)
    assert bool(found) is ends
    assert found is None or (found.rule, found.kill) == ("light_inactive", 51)
    assert timeout_of(replace(job, status_since=NOW - hours(5.9)), NOW) is None


@pytest.mark.parametrize(
    ("queue", "priority", "label", "ends"),
    [
        (QueueView(last_start=NOW - hours(2)), 800, "managed", True),
        (QueueView(last_start=NOW - hours(1.9)), 800, "managed", False),
        (QueueView(last_start=NOW - hours(2)), 799, "managed", False),
        (QueueView(last_start=None), 800, "managed", False),
        (QueueView(status="offline", last_start=NOW), 800, "managed", True),
        (QueueView(status="test", last_start=NOW), 900, "managed", True),
        (QueueView(status="brokeroff", last_start=NOW), 900, "managed", False),
    ],
)
def test_urgent_jobs_leave_queues_that_start_none(queue: QueueView, priority: int, label: str, ends: bool) -> None:
    job = aged(J.ACTIVATED, hours(4), label, priority=priority, queue=queue)
    found = timeout_of(job, NOW)
    assert bool(found) is ends
    assert found is None or (found.rule, found.kill) == ("urgent_inactive", 51)
    assert timeout_of(replace(job, status_since=NOW - hours(3.9)), NOW) is None


def test_analysis_leaves_a_closed_queue_at_once_and_stays_where_its_task_runs() -> None:
    closed = aged(J.ACTIVATED, minutes(1), "user", queue=QueueView("Q", "offline"))
    found = timeout_of(closed, NOW)
    assert found and (found.rule, found.reason.detail) == ("analysis_closed", "the queue (Q) is offline")
    waiting = aged(J.ACTIVATED, hours(20), "user", task_active_at=NOW - hours(2.9))
    assert timeout_of(waiting, NOW) is None
    assert timeout_of(replace(waiting, task_active_at=NOW - hours(3)), NOW)


@pytest.mark.parametrize("queue", [QueueView(status="paused"), QueueView(no_reassign=True)])
def test_paused_queues_and_those_without_reassignment_have_no_time_outs(queue: QueueView) -> None:
    for status in JOB_OPEN:
        assert timeout_of(aged(status, days(100), queue=queue), NOW) is None


def test_event_service_jobs_that_hurry_get_a_day() -> None:
    job = replace(aged(J.RUNNING, days(1), event_service=True, priority=900), heartbeat_at=NOW)
    found = timeout_of(job, NOW)
    assert found and (found.rule, found.kill) == ("events", 2)
    assert timeout_of(replace(job, jumbo=True), NOW) is None
    assert timeout_of(replace(job, priority=899), NOW) is None
    assert timeout_of(replace(job, priority=0, merge=True), NOW)


def test_a_report_that_waits_protects_analysis_jobs() -> None:
    job = aged(J.HOLDING, hours(5), "user", report_waits=True)
    assert timeout_of(job, NOW) is None
    found = timeout_of(replace(job, report_waits=False), NOW)
    assert found and found.error == ("jobdispatcher", 100)


def test_a_job_that_was_just_sent_is_not_judged_by_an_older_heartbeat() -> None:
    job = replace(aged(J.SENT, days(1)), status_since=NOW - minutes(5))
    assert timeout_of(job, NOW) is None
    never_heard = replace(aged(J.RUNNING, hours(2)), heartbeat_at=None)
    found = timeout_of(never_heard, NOW)
    assert found and found.rule == "heartbeat"


def test_settings_and_queues_move_limits() -> None:
    settings = TimeoutSettings(
        by={"heartbeat": {"Pull_Opportunistic": hours(6)}},
        limits=MappingProxyType({"holding": hours(5), "defined": hours(1), "analysis": hours(1)}),
    )

    def rule(job: JobView) -> str | None:
        found = timeout_of(job, NOW, settings)
        return found.rule if found else None

    assert rule(aged(J.RUNNING, hours(5), workflow="Pull_Opportunistic")) is None
    assert rule(aged(J.RUNNING, hours(6), workflow="Pull_Opportunistic")) == "heartbeat"
    assert rule(aged(J.RUNNING, hours(5), workflow="other")) == "heartbeat"
    assert rule(aged(J.HOLDING, hours(5))) == "holding"
    assert rule(aged(J.DEFINED, hours(1))) == "defined"
    assert rule(aged(J.ACTIVATED, hours(1), "user")) == "analysis"
    slow = QueueView(transfer_high_days=5, transfer_low_days=0.5)
    assert rule(aged(J.TRANSFERRING, days(4), priority=900, queue=slow)) is None
    assert rule(aged(J.TRANSFERRING, days(5), priority=900, queue=slow)) == "transferring_urgent"
    assert rule(aged(J.TRANSFERRING, days(0.5), priority=100, queue=slow)) == "transferring"


def test_the_sentence_says_how_long() -> None:
    found = timeout_of(aged(J.RUNNING, hours(3)), NOW)
    assert (
        found
        and found.reason.detail == "no heartbeat of the running job since 2026-03-01 09:00:00 UTC, the limit is 2 h"
    )
    found = timeout_of(aged(J.WAITING, hours(3)), NOW)
    assert found and found.reason.detail == "waiting for more than 30 min"
    found = timeout_of(aged(J.THROTTLED, days(8), "user"), NOW)
    assert found and found.reason.detail == "throttled for more than 7 days"


def test_every_rule_says_what_it_does() -> None:
    assert len({rule.name for rule in TIMEOUTS}) == len(TIMEOUTS)
    for rule in TIMEOUTS:
        assert (rule.do == Do.KILL) == (rule.kill is not None)
        assert rule.statuses and not rule.statuses & JOB_FINAL


@pytest.mark.parametrize("label", ["managed", "test", "user", "panda", "install"])
def test_no_open_state_but_merging_lasts_for_ever(label: str) -> None:
    for status in JOB_OPEN - {J.MERGING}:
        assert timeout_of(aged(status, days(365), label), NOW), (status, label)


@given(
    status=st.sampled_from(JobStatus),
    label=st.sampled_from(["managed", "user", "test", "install"]),
    age=st.integers(0, 60 * 24 * 3600),
    later=st.integers(0, 24 * 3600),
    priority=st.integers(0, 2000),
    build=st.booleans(),
)
def test_what_is_over_stays_over(
    status: JobStatus, label: str, age: int, later: int, priority: int, build: bool
) -> None:
    job = aged(status, timedelta(seconds=age), label, priority=priority, build=build)
    found = timeout_of(job, NOW)
    if status in JOB_FINAL:
        assert found is None
    if found:
        assert timeout_of(job, NOW + timedelta(seconds=later))


def test_a_job_that_was_told_to_stop_is_not_told_again_but_its_silence_counts() -> None:
    old = replace(aged(J.RUNNING, days(22)), heartbeat_at=NOW, told=True)
    assert timeout_of(old, NOW) is None
    found = timeout_of(replace(old, heartbeat_at=NOW - hours(2)), NOW)
    assert found and found.rule == "heartbeat"


def test_jobs_of_a_task_that_forbids_it_are_not_assigned_anew() -> None:
    job = aged(J.ACTIVATED, days(3), stays=True)
    assert timeout_of(job, NOW) is None
    found = timeout_of(replace(job, status=J.PENDING), NOW)
    assert found and found.rule == "pending"
