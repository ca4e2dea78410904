"""The watch dog of jumbo jobs: the worked example, each parameter, and what holds for any tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.policy.configuration import DEFAULTS, Configuration
from events_app.rules.jumbo_watch import BOOST_PRIORITY, JumboAct, JumboLimits, JumboTask, is_candidate, watch
from tasks_app.domain.jumbo_use import ENABLED, UseJumbo

K, M = 1_000, 1_000_000
A, U = JumboAct, UseJumbo
LARGE = JumboTask(1, None, 8 * M, 5 * M, 300, 900)
AT_WORK = JumboTask(2, U.RUNNING, 8 * M, 400 * K, 700, 900)
OFF = JumboTask(3, U.DISABLED, 8 * M, 50 * K, 400, 900)
NEARLY = JumboTask(4, U.RUNNING, 100 * M, 2 * M, 700, 300)


def acts(tasks: list[JumboTask], limits: JumboLimits | None = None) -> list[tuple[int, JumboAct]]:
    return [(step.task_id, step.act) for step in watch(tasks, limits or JumboLimits())]


def test_the_worked_example() -> None:
    limits = JumboLimits.from_configuration(DEFAULTS.with_value("jumbo_dog", "JUMBO_MAX_TASKS", 2))
    assert (limits.min_events_enable, limits.max_events) == (M, M)
    first = JumboTask(1, U.RUNNING, 9 * M, 400 * K, 700, 900)
    others = [JumboTask(n, None, 9 * M, left, prio, 900) for n, left, prio in [(2, 3 * M, 300), (3, 1_200_000, 499)]]
    late = JumboTask(4, None, 9 * M, 5 * M, 500, 900)
    assert not is_candidate(late, limits)
    assert acts([first, *others, late], limits) == [(2, A.ENABLE)]
    assert acts([replace(first, left=99_999)], limits) == [(1, A.DISABLE)]


def test_the_events_of_tasks_with_jumbo_jobs_keep_others_away() -> None:
    limits = JumboLimits(max_tasks=5, max_events=400 * K)
    assert acts([AT_WORK, LARGE], limits) == []
    assert acts([AT_WORK, LARGE], replace(limits, max_events=400 * K + 1)) == [(1, A.ENABLE)]


@pytest.mark.parametrize(
    "changes",
    [{"left": M}, {"priority": 500}, {"is_bound": True}, {"by_position": False}, {"has_jumbo_queue": False}],
)
def test_what_keeps_a_task_from_jumbo_jobs(changes: dict[str, Any]) -> None:
    assert acts([LARGE]) == [(1, A.ENABLE)]
    assert acts([replace(LARGE, **changes)]) == []


def test_a_task_at_one_site_keeps_what_it_has() -> None:
    assert acts([replace(AT_WORK, left=5, is_bound=True, priority=950)]) == []


def test_who_loses_jumbo_jobs_makes_room_and_gets_its_priority_at_once() -> None:
    small = JumboTask(2, U.LACK, 8 * M, 99 * K, 400, 100)
    assert acts([LARGE, small]) == [(2, A.DISABLE), (2, A.BOOST), (1, A.ENABLE)]
    assert acts([LARGE, replace(small, events=200 * K)]) == [(2, A.DISABLE), (2, A.RAISE), (1, A.ENABLE)]


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, True),
        ({"left": 5 * M}, False),
        ({"left": 4_000_000}, True),
        ({"priority": 900}, False),
        ({"files_left": 500}, False),
        ({"events": 0, "left": 0}, False),
    ],
)
def test_tasks_that_are_nearly_done_are_hurried(changes: dict[str, Any], wanted: bool) -> None:
    limits = JumboLimits(min_events_disable=0)
    assert acts([replace(NEARLY, **changes)], limits) == ([(4, A.BOOST)] if wanted else [])


class Changed(NamedTuple):
    key: str
    value: int
    tasks: list[JumboTask]
    before: list[tuple[int, JumboAct]]
    after: list[tuple[int, JumboAct]]


OTHER = replace(LARGE, task_id=9, left=2 * M)
PARAMETERS = [
    Changed("JUMBO_MAX_TASKS", 0, [LARGE], [(1, A.ENABLE)], []),
    Changed("JUMBO_MIN_EVENTS_DISABLE", 500 * K, [AT_WORK], [], [(2, A.DISABLE)]),
    Changed("JUMBO_MIN_EVENTS_ENABLE", 6 * M, [LARGE], [(1, A.ENABLE)], []),
    Changed("JUMBO_MAX_EVENTS", 0, [LARGE], [(1, A.ENABLE)], []),
    Changed("JUMBO_MAX_CURR_PRIO", 200, [LARGE], [(1, A.ENABLE)], []),
    Changed("JUMBO_PROG_TO_BOOST", 98, [NEARLY], [(4, A.BOOST)], []),
    Changed("JUMBO_MAX_FILES_TO_BOOST", 300, [NEARLY], [(4, A.BOOST)], []),
    Changed("JUMBO_PRIO_DISABLED", 300, [replace(OFF, events=200 * K)], [(3, A.RAISE)], []),
]


@pytest.mark.parametrize("row", PARAMETERS, ids=lambda row: row.key)
def test_a_parameter_changes_what_is_done(row: Changed) -> None:
    def done(configuration: Configuration) -> list[tuple[int, JumboAct]]:
        return acts(row.tasks, JumboLimits.from_configuration(configuration))

    assert done(DEFAULTS) == row.before
    assert done(DEFAULTS.with_value("jumbo_dog", row.key, row.value)) == row.after


def test_defaults_are_those_of_the_documents() -> None:
    assert JumboLimits.from_configuration(DEFAULTS) == JumboLimits()


def test_sentences_have_the_numbers() -> None:
    (on,) = watch([LARGE], JumboLimits())
    assert on.sentence.replace("\u202f", " ") == (
        "jumbo jobs are switched on: 5 000 000 events remain, more than JUMBO_MIN_EVENTS_ENABLE (1 000 000)"
    )
    (hurried,) = watch([NEARLY], JumboLimits())
    assert hurried.sentence == "the task is hurried: 98 % of its events are processed and 300 files are left"
    assert hurried.priority == BOOST_PRIORITY


TASKS = st.lists(
    st.builds(
        JumboTask,
        task_id=st.integers(1, 10**6),
        use=st.sampled_from([None, *UseJumbo]),
        events=st.integers(0, 10**7),
        left=st.integers(0, 10**7),
        priority=st.integers(-100, 1200),
        files_left=st.integers(0, 2_000),
        is_bound=st.booleans(),
        by_position=st.booleans(),
        has_jumbo_queue=st.booleans(),
    ),
    unique_by=lambda task: task.task_id,
)
LIMITS = st.builds(
    JumboLimits,
    max_tasks=st.integers(0, 5),
    min_events_disable=st.integers(0, 10**6),
    min_events_enable=st.integers(0, 10**7),
    max_events=st.integers(0, 10**7),
)


@given(tasks=TASKS, limits=LIMITS)
def test_limits_hold_whatever_the_tasks_are(tasks: list[JumboTask], limits: JumboLimits) -> None:
    by_id = {task.task_id: task for task in tasks}
    steps = watch(tasks, limits)
    on = [by_id[step.task_id] for step in steps if step.act is A.ENABLE]
    off = {step.task_id for step in steps if step.act is A.DISABLE}
    stay = [task for task in tasks if task.use in ENABLED and task.task_id not in off]
    assert not on or len(stay) + len(on) <= limits.max_tasks
    assert not on or sum(task.left for task in (*stay, *on[:-1])) < limits.max_events
    assert [task.left for task in on] == sorted((task.left for task in on), reverse=True)
    assert all(is_candidate(task, limits) for task in on)
    assert all(by_id[n].left < limits.min_events_disable and not by_id[n].is_bound for n in off)
    assert all(task.is_bound or task.left >= limits.min_events_disable for task in stay)
    for step in steps:
        assert step.priority is None or step.priority > by_id[step.task_id].priority
    priorities = [step.task_id for step in steps if step.priority is not None]
    assert len(priorities) == len(set(priorities))
