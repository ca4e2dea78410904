from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.domain.units import event_cpu_time, percentile
from tasks_app.params.splitrule import SplitRule
from tasks_app.scouts.rules.scout_metrics import (
    ExpectedJobs,
    JobSample,
    Measured,
    MetricSettings,
    Presets,
    TaskSize,
    core_power_of,
    expected_jobs,
    group_size_gb,
    measure,
    measure_merge,
)

MB = 2**20


def job(number: int = 1, exec_s: float = 3600, **more: object) -> JobSample:
    return JobSample(number, exec_s, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "rank", "wanted"),
    [
        ([5], 75, 5),
        ([1, 2], 75, 1.75),
        ([4, 1, 3, 2], 50, 2.5),
        ([1, 2, 3, 4, 5], 75, 4),
        ([1, 9], 0, 1),
        ([1, 9], 100, 9),
    ],
)
def test_percentiles_lie_between_the_sorted_neighbours(values: list[float], rank: float, wanted: float) -> None:
    assert percentile(values, rank) == wanted


@given(st.lists(st.floats(0, 1e9), min_size=1), st.floats(0, 100))
def test_a_percentile_is_within_the_values_and_its_half_is_the_median(values: list[float], rank: float) -> None:
    assert min(values) <= percentile(values, rank) <= max(values)
    assert percentile(values, 50) == pytest.approx(statistics.median(values))


@pytest.mark.parametrize(("values", "rank"), [([], 50), ([1.0], 101), ([1.0], -1)])
def test_there_is_no_percentile_of_nothing(values: list[float], rank: float) -> None:
    with pytest.raises(ValueError, match="percentile"):
        percentile(values, rank)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (100, (150, "HS06sPerEvent")),
        (6.67, (11, "HS06sPerEvent")),
        (4, (6000, "mHS06sPerEvent")),
        (0, (0, "mHS06sPerEvent")),
    ],
)
def test_small_cpu_times_are_kept_in_thousandths(value: float, wanted: tuple[int, str]) -> None:
    assert event_cpu_time(value) == wanted


def test_an_empty_sample_says_nothing() -> None:
    assert measure([], Presets()) == Measured(0)


def test_cpu_time_follows_the_document() -> None:
    # (10600 − 600) × 10 × 8 × 0.9 / 1000 × 1.5
    found = measure([job(exec_s=10_600, cores=8, events=1000)], Presets())
    assert (found.cpu_time, found.cpu_time_unit) == (1080, "HS06sPerEvent")
    assert ("cpuTime", 1) in found.tags


@pytest.mark.parametrize(
    ("sample", "counts"),
    [
        (job(events=9), False),
        (job(events=10), True),
        (job(events=79, cores=8), False),
        (job(events=80, cores=8), True),
        (job(events=1, pseudo_input=True), True),
        (job(exec_s=6 * 3600), False),
        (job(exec_s=6 * 3600 + 1), True),
        (job(exec_s=0, events=100), False),
    ],
)
def test_cpu_time_is_taken_from_jobs_that_tell_enough(sample: JobSample, counts: bool) -> None:
    assert (measure([sample], Presets()).cpu_time is not None) is counts


@pytest.mark.parametrize(
    "presets",
    [
        Presets(cpu_time_unit="HS06sPerEventFixed"),
        Presets(cpu_time_unit="mHS06sPerEventFixed"),
        Presets(cpu_efficiency_percent=0),
    ],
)
def test_fixed_cpu_time_stays(presets: Presets) -> None:
    assert measure([job(events=100)], presets).cpu_time is None


def test_a_job_no_longer_than_the_base_counts_no_cpu_time() -> None:
    assert measure([job(exec_s=500, events=100)], Presets()).cpu_time == 0


def test_measured_cpu_time_and_memory_replace_larger_presets() -> None:
    found = measure([job(events=100, max_pss_kb=1000 * 1024)], Presets(cpu_time=1e6, ram=9000))
    assert found.cpu_time == 405  # 3000 × 10 × 0.9 / 100 × 1.5
    assert (found.ram_mb, found.ram_used_mb) == (1100, 1000)
    little = measure([job(max_pss_kb=20 * 1024)], Presets(ram=1000), MetricSettings(ram_min_mb=1000))
    assert (little.ram_mb, little.ram_used_mb) == (1000, 20)


@pytest.mark.parametrize(
    ("unit", "base", "settings", "wanted"),
    [
        ("MBPerCore", 0, MetricSettings(), 1100),
        ("MBPerCore", 1600, MetricSettings(), 660),
        ("MBPerCore", 99_999, MetricSettings(), 0),
        ("MBPerCore", 0, MetricSettings(ram_min_mb=2000), 2000),
        ("MBPerCore", 0, MetricSettings(ram_margin_percent=0), 1000),
        ("MB", 0, MetricSettings(), 4400),
        ("MB", 1600, MetricSettings(), 4400),
        ("MBPerCoreFixed", 0, MetricSettings(), None),
    ],
)
def test_memory_per_core_or_job(unit: str, base: int, settings: MetricSettings, wanted: int | None) -> None:
    sample = [job(cores=4, max_pss_kb=4000 * 1024)]
    assert measure(sample, Presets(ram_unit=unit, base_ram_mb=base), settings).ram_mb == wanted


def test_memory_is_a_percentile_of_the_jobs() -> None:
    sample = [job(n, max_pss_kb=n * 1000 * 1024) for n in range(1, 6)]
    assert measure(sample, Presets()).ram_mb == 4400
    assert measure(sample, Presets(), MetricSettings(ram_rank=100, ram_margin_percent=0)).ram_mb == 5000


def test_virtual_memory_stands_in_for_whole_jobs_only() -> None:
    sample = [job(vmem_peak_kb=2000 * 1024)]
    assert measure(sample, Presets(ram_unit="MB")).ram_mb == 2200
    assert measure(sample, Presets(ram_unit="MBPerCore")).ram_mb is None


@pytest.mark.parametrize(
    ("cpu_s", "input_mb", "preset", "wanted"),
    [
        (7200, 100, None, 108),
        (3599, 100, None, 0),
        (7200, 0, None, 0),
        (7200, 100, 107, 108),
        (7200, 100, 109, None),
        (7200, 100, -1, None),
        (1e12, 1, None, 999_999_999),
        (None, 100, None, None),
    ],
)
def test_walltime_per_mb(cpu_s: float | None, input_mb: float, preset: int | None, wanted: int | None) -> None:
    found = measure([job(cpu_s=cpu_s, input_mb=input_mb)], Presets(walltime=preset))
    assert (found.walltime, found.walltime_unit) == (wanted, "kSI2kseconds")


@pytest.mark.parametrize(
    ("unit", "events", "out", "wanted"),
    [
        ("kB", 100, 300 * MB, (1537, "kB")),  # 300 MB / 200 MB, and a little: bytes are rounded up first
        ("kBPerEvent", 100, 300 * MB, (3072, "kBPerEvent")),
        ("kB", 9, 300 * MB, (None, None)),
        ("kB", None, 300 * MB, (1537, "kB")),
        ("kBPerEvent", None, 300 * MB, (None, None)),
        ("kBFixed", 100, 300 * MB, (None, None)),
        ("MBPerEventFixed", 100, 300 * MB, (None, None)),
        ("kB", 100, 10**12, (10240, "kB")),
    ],
)
def test_output_per_mb_or_event(unit: str, events: int | None, out: int, wanted: tuple[int | None, str | None]) -> None:
    found = measure([job(events=events, input_mb=200, stream_bytes=(("out", out + 1),))], Presets(out_disk_unit=unit))
    assert found.out_disk == (wanted[0] if wanted[0] in (None, 10240) else pytest.approx(wanted[0], abs=1))
    assert found.out_disk_unit == wanted[1]


def test_event_service_says_nothing_about_outputs() -> None:
    sample = [job(events=100, input_mb=200, stream_bytes=(("out", MB),), event_service=True)]
    assert measure(sample, Presets()).out_disk is None


def test_rates_of_input_output_and_disk() -> None:
    one = job(1, 1000, cores=2, input_mb=1000, stream_bytes=(("a", 500 * MB), ("b", 500 * MB)), disk_io_kb=5_000_000)
    two = job(2, 1000, cores=2, input_mb=10, disk_io_kb=1_000_000)
    found = measure([one, two], Presets())
    assert found.io_intensity_kb_s == 1024  # 2000 MB in 1000 s on 2 cores
    assert found.disk_io_kb_s == 3000
    assert measure([one, two], Presets(), MetricSettings(disk_io_cap_kb_s=2000)).disk_io_kb_s == 2000


@pytest.mark.parametrize(
    ("preset", "unit", "wanted"),
    [(None, "MB", 700), (699, "MB", 700), (700, "MB", None), (1, "GB", None), (100, "kB", 700)],
)
def test_a_larger_preset_of_the_work_folder_stays(preset: int | None, unit: str, wanted: int | None) -> None:
    sample = [job(1, work_dir_mb=12.5), job(2, library_mb=699.5)]
    assert measure(sample, Presets(work_disk=preset, work_disk_unit=unit)).work_disk_mb == wanted


def test_an_unknown_unit_of_the_work_folder_is_refused() -> None:
    with pytest.raises(ValueError, match="TB"):
        measure([job(work_dir_mb=1)], Presets(work_disk_unit="TB"))


def test_leaks_and_efficiency() -> None:
    sample = [job(1, 100, cpu_s=50, leak_kb_s=4, cores=4, leak_chi2=1), job(2, 100, cpu_s=90, leak_kb_s=2, leak_chi2=3)]
    found = measure(sample, Presets())
    assert (found.leak_kb_s_per_core, found.leak_chi2) == (1.5, 2)
    assert found.cpu_efficiency_percent == (13 + 90) / 2


@pytest.mark.parametrize(
    ("walltime", "ram", "wanted"), [(None, None, (108, 1100)), (107, 1099, (108, 1100)), (108, 1100, (None, None))]
)
def test_merge_jobs_give_walltime_and_memory_that_never_fall(
    walltime: int | None, ram: int | None, wanted: tuple[int | None, int | None]
) -> None:
    found = measure_merge([job(cpu_s=7200, input_mb=100, max_pss_kb=1000 * 1024)], walltime, ram)
    assert (found.walltime, found.ram_mb) == wanted


@pytest.mark.parametrize(
    ("benchmarks", "queue", "wanted"),
    [
        ({"A": 12, "B": 8}, 9, 12),
        ({"B": 8, "C": 10}, 9, 9),
        ({"C": 10}, 9, 10),
        ({}, 9, 9),
        ({}, None, 10),
        ({}, 0, 10),
    ],
)
def test_core_power(benchmarks: dict[str, float], queue: float | None, wanted: float) -> None:
    assert core_power_of("A", benchmarks, queue) == wanted


@pytest.mark.parametrize(
    ("size", "rule", "wanted"),
    [
        (TaskSize(1000, 10, 10, 10), "NF=1", ExpectedJobs(1000, None, 990)),
        (TaskSize(1000, 20, 10, 5), "NF=2", ExpectedJobs(500, None, 490)),
        (TaskSize(1000, 10, 10, 10, 5000, 100), "NF=1", ExpectedJobs(1000, 500, 990)),
        (TaskSize(100_000, 0, 10, 10), "", ExpectedJobs(10_000, None, 10_000)),  # mean input 50 000 MB of 500 000
        (TaskSize(100_000, 0, 10, 10, 1000, 10), "", ExpectedJobs(10_000, 100, 10_000)),
        (TaskSize(1000, 0, 0, 0), "NF=1", ExpectedJobs(0, None, 0)),
        (TaskSize(0, 0, 0, 0), "", ExpectedJobs(0, None, 0)),
        (TaskSize(1000, 10, 10, 10), "MF=100", ExpectedJobs(10, None, 10)),  # scouts read one file of a hundred
        (TaskSize(1000, 10, 10, 10), "NG=50,MF=100", ExpectedJobs(977, None, 967)),  # 50 000 MB of 51 200
        (TaskSize(1000, 10, 10, 10), "NG=10,MF=100", ExpectedJobs(1000, None, 990)),
    ],
)
def test_expected_jobs(size: TaskSize, rule: str, wanted: ExpectedJobs) -> None:
    assert expected_jobs(size, SplitRule.parse(rule), [job(input_mb=50_000)]) == wanted


def test_the_smaller_and_the_larger_estimate() -> None:
    assert (ExpectedJobs(7, 3, 0).fewest, ExpectedJobs(7, 3, 0).most) == (3, 7)
    assert (ExpectedJobs(7, None, 0).fewest, ExpectedJobs(7, None, 0).most) == (7, 7)


@pytest.mark.parametrize(
    ("rule", "more", "wanted"),
    [
        ("TN=10", {}, 23),
        ("TN=10", {"work_disk_mb": 4000}, 23),
        ("TN=10", {"work_disk_mb": 4096, "per_event": True}, 27),
        ("TN=90", {}, 100),
        ("NG=3", {}, None),
    ],
)
def test_the_group_size_aims_at_the_largest_stream(rule: str, more: dict[str, float], wanted: int | None) -> None:
    # for 10 GB in `big`: 10 GB + 2.5 GB in `small` + 12.5 GB of input − 1500 MB
    sample = [job(1, input_mb=500, stream_bytes=(("big", 400 * MB), ("small", 100 * MB)))] * 2
    assert group_size_gb(SplitRule.parse(rule), sample, **more) == wanted  # type: ignore[arg-type]


def test_no_outputs_no_group_size() -> None:
    assert group_size_gb(SplitRule.parse("TN=10"), [job(input_mb=500)]) is None
    assert group_size_gb(SplitRule.parse("TN=1"), [job(stream_bytes=(("a", 1),))]) == 1


samples = st.lists(
    st.builds(
        JobSample,
        job_id=st.integers(1, 10**6),
        exec_s=st.floats(0, 1e6),
        cpu_s=st.none() | st.floats(0, 1e8),
        cores=st.integers(0, 64),
        core_power=st.floats(0.1, 100),
        max_pss_kb=st.none() | st.integers(0, 10**9),
        input_mb=st.floats(0, 1e6),
        events=st.none() | st.integers(0, 10**6),
        stream_bytes=st.just(()) | st.tuples(st.tuples(st.just("o"), st.integers(0, 10**12))),
        disk_io_kb=st.none() | st.floats(0, 1e12),
        work_dir_mb=st.none() | st.floats(0, 1e6),
    ),
    max_size=12,
    unique_by=lambda s: s.job_id,
)


@given(samples, st.sampled_from(["MB", "MBPerCore"]), st.sampled_from(["kB", "kBPerEvent"]))
def test_every_number_fits_its_column(sample: list[JobSample], ram_unit: str, out_unit: str) -> None:
    found = measure(sample, Presets(ram_unit=ram_unit, out_disk_unit=out_unit))
    numbers = (
        found.walltime,
        found.cpu_time,
        found.ram_mb,
        found.out_disk,
        found.work_disk_mb,
        found.io_intensity_kb_s,
        found.disk_io_kb_s,
    )
    assert all(n is None or (isinstance(n, int) and 0 <= n <= 10**10) for n in numbers)
    assert {j for _, j in found.tags} <= {s.job_id for s in sample}
    assert not any(isinstance(n, float) and math.isnan(n) for n in numbers)
