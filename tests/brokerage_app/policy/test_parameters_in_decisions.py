"""What each parameter of the configuration changes: the same case decided as usual, and with the parameter set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from brokerage_app.brokers import analysis_job, production_job
from brokerage_app.cases.analysis_settings import AnalysisFacts, AnalysisSettings, Ended
from brokerage_app.cases.nucleus_case import settings_of
from brokerage_app.cases.production_case import ProductionSettings
from brokerage_app.policy.classes import TaskClass, TaskClassLimits, task_class, user_class
from brokerage_app.policy.configuration import DEFAULTS, Configuration
from brokerage_app.policy.filling import FillLimits, WaitingTask, choose
from brokerage_app.policy.throttle import JobCounts, Levels, Situation, limits_of, throttle
from brokerage_app.vocabulary.needs import InputData, Replica, TaskNeeds
from brokerage_app.vocabulary.site_view import Counts, SiteView, UserJobs
from brokerage_app.vocabulary.snapshot import Link
from tasks_app.upkeep.rules.withholding import Reader, Source, WithholdLimits, withhold
from tests.brokerage_app import grids
from tests.brokerage_app.brokers.test_analysis_broker import DATA, FULL, SHARE, busy, grid, needs, site
from tests.brokerage_app.brokers.test_production_job import ALONE, HERE, NEEDS, THERE, reading
from tests.brokerage_app.brokers.test_task_broker import TB, code, data, decide, grid_of, part, work
from tests.brokerage_app.grids import dataset, queue

Asked = Callable[[Configuration], Any]


class Row(NamedTuple):
    """A parameter as it is stored, a value, and what comes of the case without it and with it."""

    component: str
    key: str
    value: Any
    case: Asked
    usual: Any
    changed: Any


def nucleus(task: TaskNeeds | None = None, **space: float) -> Asked:
    """Why the only nucleus is not taken; "" when it is."""
    return lambda found: code(decide(task, grid_of("A", **space), settings=settings_of(found)))


def counted_space(found: Configuration) -> float:
    choice = decide(grid=grid_of("A", space_free_gb=1500.0 * TB), settings=settings_of(found)).verdict.chosen[0]
    return next(value for name, value in choice.factors if name.startswith("free TB"))


def flooded(found: Configuration) -> str:
    waiting = grid_of("A", to_nucleus={"A": {"Production Output": 200}})
    return code(decide(grid=waiting, settings=settings_of(found)))


def counted_work(found: Configuration) -> float:
    factors = decide(work=work(10), settings=settings_of(found)).verdict.chosen[0].factors
    return dict(factors)["1 / remaining work"]


def task(size_gb: float, files: int, here: Replica | None = None, **more: Any) -> TaskNeeds:
    values = {"io_intensity": 250.0, "priority": 500, **more}
    copies = {"A": here} if here is not None else {}
    return TaskNeeds(inputs=(data(size_gb * 1024, files, **copies),), **values)


def job(asked: TaskNeeds, *sites: SiteView, **world: Any) -> Asked:
    """Why the queue Q gets no production jobs; "ok" when it does."""

    def answer(found: Configuration) -> str:
        settings = ProductionSettings.from_configuration(found)
        verdict = production_job.broker(asked, grids.grid(*(sites or (queue("Q", "S"),)), **world), settings)
        if verdict.stopped:
            return verdict.stopped.code
        return next((skip.code for skip in verdict.skipped if skip.site == "Q"), "ok")

    return answer


def is_bootstrapped(found: Configuration) -> bool:
    idle = grids.grid(queue("Q", counts=Counts()))
    verdict = production_job.broker(ALONE, idle, ProductionSettings.from_configuration(found))
    return verdict.chosen[0].bootstrap


SLOW = {"links": {"S": Link(mbps_1h=0.5)}}
EXPRESS = replace(NEEDS, priority=1000)


def analysis(asked: TaskNeeds, *sites: SiteView, facts: AnalysisFacts | None = None, **endpoints: Any) -> Asked:
    """Why the queue A gets no analysis jobs, or the task none at all; "ok" when it does."""

    def answer(found: Configuration) -> str:
        settings = AnalysisSettings.from_configuration(found)
        verdict = analysis_job.broker(
            asked, grid(*(sites or (site(),)), **endpoints), settings, facts or AnalysisFacts()
        )
        if verdict.stopped:
            return verdict.stopped.code
        return next((skip.code for skip in verdict.skipped if skip.site == "A"), "ok")

    return answer


def chosen(asked: TaskNeeds, *sites: SiteView) -> Asked:
    def answer(found: Configuration) -> list[str]:
        verdict = analysis_job.broker(asked, grid(*sites), AnalysisSettings.from_configuration(found))
        return [choice.site for choice in verdict.chosen]

    return answer


def user_at(queued: int, running: int, own_queued: int, own_running: int, others: int, started_per_h: float) -> Asked:
    """A queue with so many jobs of the share, and of the user there."""
    users = {"ada": UserJobs(own_queued, own_running), **{f"user{n}": UserJobs(1, 0) for n in range(others)}}
    jobs = {SHARE: {"MCORE": Counts(running=running, activated=queued)}}
    return analysis(needs(), site(jobs=jobs, users={SHARE: users}, started_per_h=started_per_h))


def of_class(user: TaskClass, percent: float, remaining: int) -> Asked:
    return lambda found: (
        task_class(
            user,
            percent_done=percent,
            remaining=remaining,
            express=False,
            limits=TaskClassLimits.from_configuration(found),
        ).name
    )


def user_of_class(found: Configuration) -> str:
    return user_class(500, 0, TaskClassLimits.from_configuration(found)).name


def user_of_two_kinds(found: Configuration) -> str:
    return user_class(1500, 1000, TaskClassLimits.from_configuration(found)).name


def throttled(label: str, running: int, not_running: int) -> Asked:
    jobs = JobCounts(running, not_running, 0, 0)
    seen = Situation("S", label, jobs=Levels(jobs, jobs, jobs))
    return lambda found: throttle(seen, limits_of(found, label, "S", "", "")).code


def short_of_work(case: Asked) -> Asked:
    return lambda found: case(found.with_value("core", "WORK_SHORTAGE", True))


def sent(files_remaining: int, tasks: int = 4) -> Asked:
    waiting = [WaitingTask(number, "SCORE", 50, files_remaining) for number in range(tasks)]

    def answer(found: Configuration) -> int:
        limits = FillLimits.from_configuration(found, "managed")
        return len(choose([(one, limits) for one in waiting], {}))

    return answer


def is_withheld(io_intensity: float, priority: int) -> Asked:
    """A task whose input is at a queue that is full, where the other of the two limits is passed."""

    def answer(found: Configuration) -> bool:
        limits = WithholdLimits.from_configuration(found, "managed")
        full = Source("SE_A", readers=(Reader("A", 0, 100),))
        return withhold(io_intensity, priority, [full], limits) is not None

    return answer


NUCLEI = [
    Row("taskbrokerage", "DISK_THRESHOLD", 700.0, nucleus(), "", "nucleus_space"),
    Row("taskbrokerage", "NQUEUED_NUC_CAP", 100, flooded, "", "nucleus_backlog"),
    Row("taskbrokerage", "LEGACY_RW", True, counted_work, 1 / 50, 1),
    Row("taskbrokerage", "FREE_DISK_CUTOFF", 500.0, counted_space, 1000, 500),
    Row("taskbrokerage", "INPUT_SIZE_THRESHOLD", 200.0, nucleus(task(100, 10)), "nucleus_input_size", ""),
    Row(
        "taskbrokerage",
        "INPUT_SIZE_FRACTION",
        4.0,
        nucleus(task(100, 10, part(1, 5 * 1024.0))),
        "nucleus_input_size",
        "",
    ),
    Row("taskbrokerage", "INPUT_NUM_THRESHOLD", 200, nucleus(task(0.5, 200, part(1, 1.0))), "nucleus_input_files", ""),
    Row("taskbrokerage", "INPUT_NUM_FRACTION", 0.5, nucleus(task(0.5, 200, part(1, 1.0))), "nucleus_input_files", ""),
    Row("taskbrokerage", "MIN_IO_INTENSITY_WITH_LOCAL_DATA", 300.0, nucleus(task(100, 10)), "nucleus_input_size", ""),
    Row(
        "taskbrokerage",
        "MIN_INPUT_SIZE_WITH_LOCAL_DATA",
        30_000.0,
        nucleus(task(20_000, 10, io_intensity=100.0)),
        "nucleus_input_size",
        "",
    ),
    Row("taskbrokerage", "MAX_TASK_PRIO_WITH_LOCAL_DATA", 400, nucleus(task(100, 10)), "nucleus_input_size", ""),
    Row(
        "taskbrokerage",
        "DATA_LOCATION_CHECK_PERIOD",
        2.0,
        nucleus(task(100, 10, frozen_s=3 * 86_400.0)),
        "nucleus_input_size",
        "",
    ),
]
PRODUCTION = [
    Row("jobbroker", "NW_ACTIVE", False, job(EXPRESS, **SLOW), "slow_network", "ok"),
    Row("jobbroker", "NW_THRESHOLD", 1.2, job(EXPRESS, **SLOW), "slow_network", "ok"),
    Row(
        "jobbroker",
        "NQUEUED_SAT_CAP",
        100,
        job(NEEDS, links={"S": Link(queued={"Production Output": 120})}),
        "ok",
        "link_full",
    ),
    Row(
        "jobbroker",
        "MAX_DISKIO_DEFAULT",
        800.0,
        job(replace(ALONE, disk_io_kbps=9000.0), queue("Q", disk_io_kbps=900.0)),
        "ok",
        "disk_io_busy",
    ),
    Row(
        "jobbroker",
        "MIN_INPUT_COMPLETENESS",
        80.0,
        job(reading(100, dataset(100, 100, T=(85, 85)))),
        "input_incomplete",
        "ok",
    ),
    Row("jobbroker", "MIN_WEIGHT", 99.0, job(ALONE), "ok", "below_min_weight"),
    Row("jobbroker", "STORAGE_MIN_FREE_SIZE", 6000.0, job(ALONE), "ok", "storage_full"),
    Row(
        "jobbroker",
        "NQUEUELIMITSITE",
        60,
        job(ALONE, queue("Q", counts=Counts(running=5, activated=50))),
        "queue_full",
        "ok",
    ),
    Row("core", "WORK_SHORTAGE", True, job(ALONE, queue("Q", pledged_cores=-1)), "ok", "non_pledged"),
    Row("jobbroker", "NW_QUEUE_IMPORTANCE", 1.0, job(EXPRESS, **SLOW), "slow_network", "ok"),
    Row("jobbroker", "NW_WEIGHT_MULTIPLIER", 0.5, job(EXPRESS, **SLOW), "slow_network", "ok"),
    Row("jobbroker", "NQUEUED_NUC_CAP_FOR_JOBS", 5000, job(NEEDS, to_nucleus=6000), "ok", "links_full"),
    Row(
        "jobbroker",
        "IO_INTENSITY_CUTOFF",
        300.0,
        job(reading(250, dataset(100, 100, S=(89, 80), T=None)), HERE, THERE),
        "too_much_input_missing",
        "ok",
    ),
    Row(
        "jobbroker",
        "SIZE_CUTOFF_TO_MOVE_INPUT",
        20.0,
        job(reading(250, dataset(100, 100, S=(89, 80), T=None)), HERE, THERE),
        "too_much_input_missing",
        "ok",
    ),
    Row(
        "jobbroker",
        "NUM_CUTOFF_TO_MOVE_INPUT",
        200,
        job(reading(250, dataset(5, 1000, S=(4, 850), T=None)), HERE, THERE),
        "too_much_input_missing",
        "ok",
    ),
    Row("jobbroker", "MAX_PRIO_TO_BOOTSTRAP", 600, is_bootstrapped, False, True),
    Row(
        "jobbroker",
        "MAX_MISSING_INPUT_FILES",
        20,
        job(reading(100, dataset(100, 100, T=(85, 85)))),
        "input_incomplete",
        "ok",
    ),
]
ANALYSIS = [
    Row(
        "anal_jobbroker",
        "MIN_INPUT_COMPLETENESS",
        80.0,
        analysis(needs(inputs=(InputData("d", 100, 1.0, replicas={"SE_A": Replica(85, 1.0, False)}),))),
        "input_incomplete",
        "ok",
    ),
    Row(
        "anal_jobbroker",
        "IO_INTENSITY_CUTOFF_USER",
        50.0,
        chosen(needs(inputs=(DATA,), io_intensity=50.0), site("A", jobs=FULL), site("B")),
        [],
        ["B"],
    ),
    Row("anal_jobbroker", "MAX_EXPECTED_WAIT_HOUR", 48.0, user_at(300, 10, 50, 1, 4, 10.0), "user_queue_long", "ok"),
    Row("analy_eval", "USER_USAGE_THRESHOLD_A", 100.0, user_of_class, "A", "B"),
    Row("analy_eval", "USER_USAGE_THRESHOLD_B", 1000.0, user_of_two_kinds, "B", "C"),
    Row(
        "anal_jobbroker",
        "MIN_BAD_JOBS_TO_SKIP_PQ",
        7,
        analysis(needs(), site("A"), site("B"), facts=AnalysisFacts(ended={"A": Ended(0, 6)})),
        "failing_there",
        "ok",
    ),
    Row("anal_jobbroker", "BASE_QUEUE_LENGTH_PER_PQ", 150, user_at(120, 10, 50, 1, 4, 1.0), "user_queue_long", "ok"),
    Row(
        "anal_jobbroker",
        "BASE_EXPECTED_WAIT_HOUR_ON_PQ",
        24.0,
        user_at(120, 10, 50, 1, 4, 10.0),
        "user_queue_long",
        "ok",
    ),
    Row(
        "anal_jobbroker",
        "BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER",
        60,
        user_at(120, 10, 50, 1, 4, 1.0),
        "user_queue_long",
        "ok",
    ),
    Row("anal_jobbroker", "BASE_QUEUE_RATIO_ON_PQ", 0.5, user_at(300, 100, 50, 1, 4, 1.0), "user_queue_long", "ok"),
    Row(
        "anal_jobbroker",
        "STATIC_MAX_QUEUE_RUNNING_RATIO",
        3.0,
        user_at(300, 100, 50, 1, 4, 1.0),
        "user_queue_long",
        "ok",
    ),
    Row(
        "anal_jobbroker",
        "MAX_MISSING_INPUT_FILES",
        11,
        analysis(needs(inputs=(InputData("d", 100, 1.0, replicas={"SE_A": Replica(89, 1.0, False)}),))),
        "input_incomplete",
        "ok",
    ),
    Row(
        "anal_jobbroker",
        "STORAGE_MIN_FREE_SIZE_OUTPUT",
        100.0,
        analysis(needs(), SE_A={"space_free_gb": 150.0}),
        "storage_full",
        "ok",
    ),
    Row(
        "anal_jobbroker",
        "DATA_CHECK_TIMEOUT_USER",
        2.0,
        chosen(needs(inputs=(DATA,), frozen_s=7201.0), site("A", jobs=FULL), site("B")),
        [],
        ["B"],
    ),
    # The ratio of the share is 1.5, that of A 2.5.
    Row(
        "anal_jobbroker",
        "OVERLOAD_MIN_QUEUE",
        30,
        analysis(needs(), busy("A", Counts(running=10, activated=25)), busy("C", Counts(running=90, activated=125))),
        "overloaded",
        "ok",
    ),
    Row(
        "anal_jobbroker",
        "OVERLOAD_RATIO_OFFSET",
        2.0,
        analysis(needs(), busy("A", Counts(running=10, activated=25)), busy("C", Counts(running=90, activated=125))),
        "overloaded",
        "ok",
    ),
    Row("analy_eval", "PROGRESS_TO_BOOST_A", 80.0, of_class(TaskClass.A, 85, 100), "A", "S"),
    Row("analy_eval", "PROGRESS_TO_BOOST_B", 80.0, of_class(TaskClass.B, 85, 100), "B", "S"),
    Row("analy_eval", "MAX_REM_JOBS_TO_BOOST_A", 600, of_class(TaskClass.A, 95, 550), "A", "S"),
    Row("analy_eval", "MAX_REM_JOBS_TO_BOOST_B", 600, of_class(TaskClass.B, 96, 550), "B", "S"),
]
AGENTS = [
    Row("prod_job_throttler", "THROTTLE_THRESHOLD", 3.0, throttled("managed", 1000, 2700), "throttled_queued", ""),
    Row("anal_job_throttler", "THROTTLE_THRESHOLD", 3.0, throttled("user", 1000, 2700), "throttled_queued", ""),
    *(
        row
        for component, label in (("prod_job_throttler", "managed"), ("anal_job_throttler", "user"))
        for row in (
            Row(
                component,
                "THROTTLE_THRESHOLD_FOR_WORK_SHORTAGE",
                3.0,
                short_of_work(throttled(label, 1000, 2700)),
                "throttled_queued",
                "",
            ),
            Row(component, "NQUEUELIMIT", 3000, throttled(label, 1000, 2700), "throttled_queued", ""),
            Row(component, "NQUEUECAP_S", 100, throttled(label, 1000, 200), "", "throttled_queue_cap"),
            Row(component, "NRUNNINGCAP_S", 900, throttled(label, 1000, 200), "", "throttled_running_cap"),
        )
    ),
    Row("queue_filler", "MIN_FILES_READY_managed", 60, sent(100), 3, 0),
    Row("queue_filler", "MAX_PREASSIGNED_TASKS_managed", 1, sent(100), 3, 1),
    Row("queue_filler", "MIN_FILES_REMAINING_managed", 60, sent(80), 0, 3),
]
ROWS = [*NUCLEI, *PRODUCTION, *ANALYSIS, *AGENTS]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.component}.{row.key}")
def test_a_parameter_changes_what_is_decided(row: Row) -> None:
    assert row.case(DEFAULTS) == row.usual
    assert row.case(DEFAULTS.with_value(row.component, row.key, row.value)) == row.changed


WITHHELD = {"LIMIT_IOINTENSITY_managed": 500.0, "LIMIT_PRIORITY_managed": 900}


@pytest.mark.parametrize(("key", "value"), [("LIMIT_IOINTENSITY_managed", 700.0), ("LIMIT_PRIORITY_managed", 400)])
def test_tasks_are_withheld_that_read_more_and_are_less_urgent_than_is_set(key: str, value: float) -> None:
    found = DEFAULTS
    for name, limit in WITHHELD.items():
        found = found.with_value("task_withholder", name, limit)
    assert is_withheld(600, 500)(found)
    assert not is_withheld(600, 500)(found.with_value("task_withholder", key, value))
