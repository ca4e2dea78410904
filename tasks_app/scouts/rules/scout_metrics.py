"""What a sample of finished jobs says about a task. Pure.

Formulas: lifecycle 5.2; CPU time and I/O intensity are the JEDI document's. Sizes are in MB (2**20 bytes) or kB
(2**10 bytes), times in seconds, core power in HS06 per core.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from brokerage_app.formulas.memory import is_per_core
from tasks_app.domain.units import MOST, SAFETY, event_cpu_time, percentile, tells_efficiency
from tasks_app.params.splitrule import SplitRule
from tasks_app.splitting.limits import DEFAULT_MAX_FILES

SAMPLE_LIMIT: Final = 1000
"""The most jobs that a sample holds; the caller draws them."""
OUT_DISK_RANK: Final = 75
MOST_OUT_DISK_KB: Final = 10240
FEWEST_EVENTS: Final = 10
LONG_EXEC_S: Final = 6 * 3600
SHORTEST_CPU_S: Final = 3600
DEFAULT_CORE_POWER: Final = 10.0
WALLTIME_UNIT: Final = "kSI2kseconds"
NG_RANGE_GB: Final = (1, 100)
NG_RESERVE_MB: Final = 1500
FULL_INPUT_MB, SCOUT_INPUT_MB = 500_000, 50_000
"""Most input of a job without limits of its own, and of a scout."""
SIZE_RULES: Final = ("NF", "NE", "NG", "MF")
"""Codes of the split rule that set how large jobs are."""
_TO_MB: Final[Mapping[str, float]] = {"kB": 1 / 1024, "MB": 1.0, "GB": 1024.0}


@dataclass(frozen=True, slots=True)
class JobSample:
    """One finished job.

    exec_s         endTime − startTime; `cpu_s` is what it used on all cores, None if unknown
    core_power     HS06 of one core, see `core_power_of`
    max_pss_kb     largest PSS; `vmem_peak_kb` stands in for whole-job memory when there is no PSS
    input_mb       effective size of its master files; `events` their effective events, None if unknown
    stream_bytes   (output stream, bytes); their sum is the job's output
    disk_io_kb     read and written on the local disk
    work_dir_mb    largest size of the work folder; `library_mb` of the library it unpacked
    leak_kb_s      memory leak of the whole job in kB/s, with the chi2 of the fit
    """

    job_id: int
    exec_s: float
    cpu_s: float | None = None
    cores: int = 1
    core_power: float = DEFAULT_CORE_POWER
    max_pss_kb: int | None = None
    vmem_peak_kb: int | None = None
    input_mb: float = 0.0
    events: int | None = None
    stream_bytes: tuple[tuple[str, int], ...] = ()
    disk_io_kb: float | None = None
    work_dir_mb: float | None = None
    library_mb: float | None = None
    leak_kb_s: float | None = None
    leak_chi2: float | None = None
    pseudo_input: bool = False
    event_service: bool = False

    @property
    def output_bytes(self) -> int:
        return sum(size for _, size in self.stream_bytes)

    @property
    def used_cores(self) -> int:
        return max(self.cores, 1)


@dataclass(frozen=True, slots=True)
class Presets:
    """The task's columns before measuring, with their units as stored. None: not set."""

    walltime: int | None = None
    cpu_time: float | None = None
    cpu_time_unit: str = "HS06sPerEvent"
    cpu_efficiency_percent: int = 90
    base_walltime_s: int = 600
    ram: int | None = None
    ram_unit: str = "MBPerCore"
    base_ram_mb: int = 0
    out_disk: int | None = None
    out_disk_unit: str = "kB"
    work_disk: int | None = None
    work_disk_unit: str = "MB"


@dataclass(frozen=True, slots=True)
class MetricSettings:
    """SCOUT_RAMCOUNT_RANK, _MARGIN (per cent), _MIN (MB), SCOUT_CPUTIME_RANK, SCOUT_DISK_IO_CAP (kB/s).

    A rank of 100 and a margin of 0 give the JEDI document's memory: the maximum as measured.
    """

    ram_rank: float = 75
    ram_margin_percent: float = 10
    ram_min_mb: int | None = None
    cpu_time_rank: float = 95
    disk_io_cap_kb_s: int | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """What is written to the task; None leaves the column. `walltime_unit` is always written: it says "measured".

    ram_mb        what is asked for: of what jobs used, with the margin, and no less than the least
    ram_used_mb   what jobs used: for people, it is not written to the task
    tags          (attribute, job id) of the jobs that set a value
    """

    jobs: int
    walltime: int | None = None
    walltime_unit: str = WALLTIME_UNIT
    cpu_time: int | None = None
    cpu_time_unit: str | None = None
    ram_mb: int | None = None
    ram_used_mb: int | None = None
    out_disk: int | None = None
    out_disk_unit: str | None = None
    work_disk_mb: int | None = None
    io_intensity_kb_s: int | None = None
    disk_io_kb_s: int | None = None
    leak_kb_s_per_core: float | None = None
    leak_chi2: float | None = None
    cpu_efficiency_percent: float | None = None
    tags: tuple[tuple[str, int], ...] = ()


def core_power_of(site: str, benchmarks: Mapping[str, float], queue_power: float | None) -> float:
    """HS06 per core of a job's host: its benchmark for the site, else the mean of its benchmarks, else the queue's, else 10."""
    if benchmarks.get(site, 0) > 0:
        return benchmarks[site]
    known = [power for power in benchmarks.values() if power > 0]
    if known:
        return sum(known) / len(known)
    return queue_power if queue_power and queue_power > 0 else DEFAULT_CORE_POWER


def measure(samples: Sequence[JobSample], presets: Presets, settings: MetricSettings | None = None) -> Measured:
    """All numbers of a task from a sample of its finished jobs. Nothing but the unit is set by an empty sample.

    Memory and CPU time replace larger presets; walltime and work folder do not. Units ending in Fixed keep the preset.
    Raises ValueError for an unknown unit of memory or of the work folder.
    """
    settings = settings or MetricSettings()
    cpu = _cpu_times(samples, presets)
    ram = _ram_kb(samples, presets)
    out = _out_disk_bytes(samples, presets)
    io = {s.job_id: _ratio(s.input_mb * 1024 + s.output_bytes / 1024, s.exec_s * s.used_cores) for s in _ran(samples)}
    work = {s.job_id: max(s.work_dir_mb or 0, s.library_mb or 0) for s in samples if s.work_dir_mb or s.library_mb}
    cpu_time = event_cpu_time(percentile(list(cpu.values()), settings.cpu_time_rank)) if cpu else (None, None)
    leaks = [s.leak_kb_s / s.used_cores for s in samples if s.leak_kb_s is not None]
    fits = [s.leak_chi2 for s in samples if s.leak_chi2 is not None]
    tags = (
        ("cpuTime", _nearest(cpu, settings.cpu_time_rank)),
        ("ramCount", _nearest(ram, settings.ram_rank)),
        ("outDiskCount", _nearest(out, OUT_DISK_RANK)),
        ("ioIntensity", _nearest(io, 100)),
        ("workDiskCount", _nearest(work, 100)),
        ("walltime", _nearest({s.job_id: s.cpu_s for s in samples if s.cpu_s}, 100)),
    )
    return Measured(
        jobs=len(samples),
        walltime=_walltime(samples, presets.walltime),
        cpu_time=cpu_time[0],
        cpu_time_unit=cpu_time[1],
        ram_mb=_ram_mb(list(ram.values()), settings),
        ram_used_mb=_capped(percentile(list(ram.values()), settings.ram_rank) / 1024) if ram else None,
        out_disk=_out_disk_kb(list(out.values())),
        out_disk_unit=("kBPerEvent" if _per_event(presets) else "kB") if out else None,
        work_disk_mb=_work_disk_mb(work.values(), presets) if work else None,
        io_intensity_kb_s=_capped(max(io.values())) if io else None,
        disk_io_kb_s=_disk_io(samples, settings.disk_io_cap_kb_s),
        leak_kb_s_per_core=sum(leaks) / len(leaks) if leaks else None,
        leak_chi2=sum(fits) / len(fits) if fits else None,
        cpu_efficiency_percent=percentile(e, 50) if (e := efficiencies_percent(samples)) else None,
        tags=tuple((name, job) for name, job in tags if job is not None),
    )


@dataclass(frozen=True, slots=True)
class MergeMeasured:
    """What is written to the task of its merge jobs; None leaves the column. `walltime` is seconds for each MB that they read."""

    walltime: int | None
    ram_mb: int | None


def measure_merge(
    samples: Sequence[JobSample], walltime: int | None, ram_mb: int | None, settings: MetricSettings | None = None
) -> MergeMeasured:
    """The same for merge jobs, whose memory is that of the whole job. Neither number falls below the task's own."""
    found = measure(samples, Presets(walltime=walltime, ram_unit="MB"), settings)
    more = found.ram_mb is not None and found.ram_mb > (ram_mb or 0)
    return MergeMeasured(found.walltime, found.ram_mb if more else None)


def _ran(samples: Sequence[JobSample]) -> list[JobSample]:
    return [s for s in samples if s.exec_s > 0]


def _ratio(part: float, whole: float) -> float:
    """A quotient that a tiny divisor cannot make endless."""
    return min(part / whole, float(MOST))


def _capped(value: float) -> int:
    return math.ceil(round(min(value, MOST), 6))


def _nearest(values: Mapping[int, float], rank: float) -> int | None:
    """The job that sets a percentile: the lowest value that is not below it."""
    if not values:
        return None
    mark = percentile(list(values.values()), rank)
    return min(((v, job) for job, v in values.items() if v >= mark), default=(0, None))[1]


def _walltime(samples: Sequence[JobSample], preset: int | None) -> int | None:
    """max CPU seconds / max input MB × 1.5; 0 when no job used an hour. A preset that is larger or negative stays."""
    longest = max((s.cpu_s for s in samples if s.cpu_s is not None), default=None)
    if longest is None:
        return None
    largest = max(s.input_mb for s in samples)
    value = 0 if longest < SHORTEST_CPU_S or largest <= 0 else _capped(_ratio(longest, largest) * SAFETY)
    return None if preset is not None and (preset < 0 or preset >= value) else value


def _cpu_times(samples: Sequence[JobSample], presets: Presets) -> dict[int, float]:
    """HS06 seconds an event: max(0, exec − base) × power × cores × efficiency / events, of jobs that tell enough.

    Few events say little about one event, unless the job ran long or makes its events itself.
    """
    if presets.cpu_time_unit.endswith("Fixed") or presets.cpu_efficiency_percent <= 0:
        return {}
    return {
        s.job_id: max(s.exec_s - presets.base_walltime_s, 0)
        * s.core_power
        * s.used_cores
        * (presets.cpu_efficiency_percent / 100)
        / max(s.events or 1, 1)
        for s in _ran(samples)
        if (s.events or 0) >= FEWEST_EVENTS * s.used_cores or s.pseudo_input or s.exec_s > LONG_EXEC_S
    }


def _ram_kb(samples: Sequence[JobSample], presets: Presets) -> dict[int, float]:
    if presets.ram_unit.endswith("Fixed"):
        return {}
    if is_per_core(presets.ram_unit):
        base = presets.base_ram_mb * 1024
        return {s.job_id: max(math.ceil((s.max_pss_kb - base) / s.used_cores), 0) for s in samples if s.max_pss_kb}
    return {s.job_id: kb for s in samples if (kb := s.max_pss_kb or s.vmem_peak_kb)}


def _ram_mb(values: Sequence[float], settings: MetricSettings) -> int | None:
    if not values:
        return None
    kb = percentile(values, settings.ram_rank) * (100 + settings.ram_margin_percent) / 100
    return max(_capped(kb / 1024), settings.ram_min_mb or 0)


def _per_event(presets: Presets) -> bool:
    return "PerEvent" in presets.out_disk_unit


def _out_disk_bytes(samples: Sequence[JobSample], presets: Presets) -> dict[int, float]:
    """Output bytes for each MB of input, or for each event."""
    if presets.out_disk_unit.endswith("Fixed"):
        return {}
    found: dict[int, float] = {}
    for s in samples:
        per = float(s.events or 0) if _per_event(presets) else s.input_mb
        if not s.event_service and per > 0 and (s.events is None or s.events >= FEWEST_EVENTS):
            found[s.job_id] = math.ceil(_ratio(s.output_bytes, per))
    return found


def _out_disk_kb(values: Sequence[float]) -> int | None:
    return min(_capped(percentile(values, OUT_DISK_RANK) / 1024), MOST_OUT_DISK_KB) if values else None


def _work_disk_mb(values: Iterable[float], presets: Presets) -> int | None:
    unit = presets.work_disk_unit or "MB"
    if unit not in _TO_MB:
        raise ValueError(f"unit {unit!r} of the work folder is not one of {', '.join(_TO_MB)}")
    largest = _capped(max(values))
    return largest if largest > (presets.work_disk or 0) * _TO_MB[unit] else None


def _disk_io(samples: Sequence[JobSample], cap: int | None) -> int | None:
    """Mean of kB read and written on the local disk in a second."""
    rates = [_ratio(s.disk_io_kb, s.exec_s) for s in _ran(samples) if s.disk_io_kb is not None]
    if not rates:
        return None
    mean = _capped(sum(rates) / len(rates))
    return mean if cap is None else min(mean, cap)


def efficiencies_percent(samples: Sequence[JobSample]) -> list[int]:
    """ceil(CPU / (cores × exec) × 100) of each job that tells."""
    return [
        math.ceil(round(_ratio(s.cpu_s * 100, s.used_cores * s.exec_s), 6))
        for s in _ran(samples)
        if s.cpu_s is not None and tells_efficiency(s.cpu_s, s.used_cores * s.exec_s)
    ]


@dataclass(frozen=True, slots=True)
class TaskSize:
    """Master files and events of a task: all, those already in jobs or done, those finished. Events None: unknown."""

    files: int
    used_files: int
    finished_files: int
    finished_jobs: int
    events: int | None = None
    finished_events: int | None = None


@dataclass(frozen=True, slots=True)
class ExpectedJobs:
    """Jobs that the whole task will have, estimated by files and by events, and how many of them are still to be made."""

    by_files: int
    by_events: int | None
    new: int

    @property
    def fewest(self) -> int:
        return self.by_files if self.by_events is None else min(self.by_files, self.by_events)

    @property
    def most(self) -> int:
        return self.by_files if self.by_events is None else max(self.by_files, self.by_events)


def expected_jobs(size: TaskSize, rule: SplitRule, samples: Sequence[JobSample]) -> ExpectedJobs:
    """Extrapolate from finished jobs: files × jobs / finished files, and the same for events.

    When nothing sets the size of jobs, later ones read more than scouts: the first estimate is scaled by the mean input
    over what a job may read (500 GB), the second by what a scout may read of that (a tenth). When only NG or MF do, scouts
    read one file each and later jobs as many as those allow: the first estimate is scaled by the larger of what a scout
    had over NG, and of one file over MF.
    """
    free = not any(rule.get_int(code) for code in SIZE_RULES)
    mean_mb = sum(s.input_mb for s in samples) / len(samples) if samples else 0.0
    by_files = size.files * size.finished_jobs / size.finished_files if size.finished_files else 0.0
    if free and mean_mb > 0:
        by_files *= min(mean_mb / FULL_INPUT_MB, 1)
    elif not free and not rule.get_int("NF") and not rule.get_int("NE"):
        by_files *= _share_of_a_job(rule, samples, mean_mb)
    by_events = None
    if size.events and size.finished_events:
        by_events = _capped(
            size.events * size.finished_jobs / size.finished_events * (SCOUT_INPUT_MB / FULL_INPUT_MB if free else 1)
        )
    unused = max(size.files - size.used_files, 0)
    return ExpectedJobs(_capped(by_files), by_events, _capped(by_files * unused / size.files) if size.files else 0)


def _share_of_a_job(rule: SplitRule, samples: Sequence[JobSample], mean_mb: float) -> float:
    """How much of what a job may hold by NG and MF a scout with one file had, 0 to 1."""
    group_gb, written = rule.get_int("NG"), sum(s.output_bytes for s in samples) / 2**20
    mean_all_mb = mean_mb + written / max(len(samples), 1)
    by_size = mean_all_mb / (group_gb * 1024) if group_gb else 0.0
    return min(max(by_size, 1 / (rule.get_int("MF") or DEFAULT_MAX_FILES)), 1)


def group_size_gb(
    rule: SplitRule, samples: Sequence[JobSample], *, work_disk_mb: float = 0, per_event: bool = False
) -> int | None:
    """NG for which the largest output stream reaches TN GB, 1 to 100; None without TN or without outputs.

    (input + all outputs) when that stream has TN GB, plus the work folder for outputs per event, − 1500 MB, which the
    splitter adds again.
    """
    target = rule.get_int("TN")
    streams: dict[str, int] = {}
    for name, size in (pair for s in samples for pair in s.stream_bytes):
        streams[name] = streams.get(name, 0) + size
    largest = max(streams.values(), default=0)
    if not target or largest <= 0:
        return None
    everything_mb = sum(s.input_mb for s in samples) + sum(streams.values()) / 2**20
    wanted_mb = target * 1024 * everything_mb / (largest / 2**20) + (work_disk_mb if per_event else 0) - NG_RESERVE_MB
    low, high = NG_RANGE_GB
    return min(max(int(wanted_mb / 1024), low), high)
