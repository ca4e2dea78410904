from __future__ import annotations

import pytest

from tasks_app.params.splitrule import SplitRule
from tasks_app.splitting.limits import (
    GB,
    MB,
    MERGE_MAX_FILES,
    SLACK_BYTES,
    WORK_MARGIN_BYTES,
    Boundaries,
    SiteNumbers,
    SplitLimits,
    TaskNumbers,
    limits_for,
    walltime_per_event,
)


def of(
    rule: str, task: TaskNumbers | None = None, site: SiteNumbers | None = None, scouting: bool = False
) -> SplitLimits:
    return limits_for(SplitRule.parse(rule), task or TaskNumbers(), site or SiteNumbers(), scouting=scouting)


def test_an_empty_rule_gives_the_defaults() -> None:
    limits = of("")
    assert (limits.files_per_job, limits.max_files, limits.events_per_job) == (None, 200, None)
    assert limits.size_limit_bytes == 20 * GB


def test_gigabytes_per_job_get_slack_and_work_folder_on_top() -> None:
    limits = of("NG=10", TaskNumbers(work_disk_count=200, work_disk_unit="MB"))
    assert limits.work_bytes == 200 * MB + WORK_MARGIN_BYTES
    assert limits.max_size_bytes == 10 * GB + SLACK_BYTES + limits.work_bytes


def test_zero_means_unset() -> None:
    limits = of("NF=0,NE=0,MF=0,NG=0")
    assert limits == of("")


def test_scouts_read_one_file_unless_the_rule_is_to_be_kept() -> None:
    assert of("", scouting=True).files_per_job == 1
    assert of("RR=1", scouting=True).files_per_job is None
    assert of("NE=100", scouting=True).files_per_job is None
    assert of("NF=4", scouting=True).files_per_job == 4


def test_copying_sites_limit_the_size_by_their_disk() -> None:
    assert of("", site=SiteNumbers(max_work_dir_bytes=7 * GB)).size_limit_bytes == 7 * GB


def test_direct_reading_lifts_the_size_for_counted_jobs_only() -> None:
    assert of("NF=2", site=SiteNumbers(direct_io=True)).size_limit_bytes is None
    assert of("", site=SiteNumbers(direct_io=True)).size_limit_bytes == 500_000 * MB
    assert of("RR=1", site=SiteNumbers(direct_io=True), scouting=True).size_limit_bytes == 50_000 * MB


@pytest.mark.parametrize(
    ("rule", "site_s", "wanted"), [("", None, None), ("MW=2", None, 7200), ("MW=2", 3600, 3600), ("", 3600, 3600)]
)
def test_the_shorter_wall_time_counts(rule: str, site_s: int | None, wanted: int | None) -> None:
    assert of(rule, site=SiteNumbers(max_time_s=site_s)).max_walltime_s == wanted


@pytest.mark.parametrize(
    ("unit", "per_mb", "per_event"),
    [("kB", 5 * 1024, 0), ("MBFixed", 5 * MB, 0), ("kBPerEvent", 0, 5 * 1024), ("kBPerEventFixed", 0, 5 * 1024)],
)
def test_outputs_grow_with_input_or_events(unit: str, per_mb: float, per_event: float) -> None:
    limits = of("", TaskNumbers(out_disk_count=5, out_disk_unit=unit))
    assert (limits.output_bytes_per_mb, limits.output_bytes_per_event) == (per_mb, per_event)


@pytest.mark.parametrize(
    ("task", "seconds"),
    [
        (TaskNumbers(cpu_time=900), 900 / 80 / 0.9),
        (TaskNumbers(cpu_time=900, cpu_efficiency_percent=50), 900 / 80 / 0.5),
        (TaskNumbers(cpu_time=900_000, cpu_time_unit="mHS06sPerEvent"), 900 / 80 / 0.9),
        (TaskNumbers(cpu_time=900, cpu_efficiency_percent=0), 0),
        (TaskNumbers(), 0),
    ],
)
def test_wall_time_an_event(task: TaskNumbers, seconds: float) -> None:
    assert walltime_per_event(task, SiteNumbers(cores=8, core_power=10)) == pytest.approx(seconds)


def test_consumers_share_the_wall_time_but_clones_do_not() -> None:
    task = TaskNumbers(cpu_time=900)
    assert of("EC=3", task).walltime_s_per_event == pytest.approx(of("", task).walltime_s_per_event / 3)
    assert of("EC=3,UC=1", task).walltime_s_per_event == of("", task).walltime_s_per_event


@pytest.mark.parametrize(("rule", "wanted"), [("", "NONE"), ("GB=1", "SPLIT"), ("GB=2", "SPLIT"), ("GB=4", "WHOLE")])
def test_boundary_modes(rule: str, wanted: str) -> None:
    assert of(rule).boundaries is Boundaries[wanted]


def test_dynamic_events_need_a_site_with_a_least_time() -> None:
    assert not of("DY=10,MX=500,NE=20").dynamic_events
    limits = of("DY=10,MX=500,NE=20", site=SiteNumbers(min_time_s=100))
    assert (limits.dynamic_events, limits.events_per_job) == (True, 500)


@pytest.mark.parametrize(
    ("rule", "dynamic", "files", "events"),
    [
        ("DY=5,MX=10", True, None, 10),
        ("DY=5,MX=10,NE=20", False, None, 10),
        ("DY=5,MX=30,NE=20", False, None, 20),
        ("DY=5,MX=10,NF=2", False, 2, None),
        ("MX=10", False, None, None),
    ],
)
def test_the_most_events_of_a_job_count_at_sites_without_a_least_time(
    rule: str, dynamic: bool, files: int | None, events: int | None
) -> None:
    limits = of(rule)
    assert (limits.dynamic_events, limits.files_per_job, limits.events_per_job) == (dynamic, files, events)


def test_merge_jobs_have_their_own_limits() -> None:
    limits = limits_for(SplitRule.parse("NF=3,NG=1,ZG=2"), TaskNumbers(), SiteNumbers(), merging=True)
    assert (limits.files_per_job, limits.max_files) == (None, MERGE_MAX_FILES)
    assert limits.max_output_bytes == 2 * GB
    assert limits.boundaries is Boundaries.TOGETHER
