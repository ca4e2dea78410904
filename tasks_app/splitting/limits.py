"""How large a job may be: from the split rule, the task's numbers and the site's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from tasks_app.params.splitrule import SplitRule

MB = 1024 * 1024
GB = 1024 * MB
SLACK_BYTES = 1500 * MB
WORK_MARGIN_BYTES = 300 * MB
DEFAULT_SIZE_BYTES = 20 * GB
DEFAULT_MAX_FILES = 200
MERGE_MAX_FILES = 50
MERGE_WORK_BYTES = 500 * MB
MERGE_GROWTH = 1.2
MERGE_FIRST_FIELD = 5
MOST_FILES = 1000

_FACTORS = {"B": 1, "kB": 1024, "MB": MB, "GB": GB}


class Boundaries(Enum):
    """What a boundary between files means for jobs."""

    NONE = "ignored"
    SPLIT = "a job stays inside one, and may be a part of it"
    WHOLE = "a job is exactly one, however large"
    TOGETHER = "a job takes one or more, never a part of one"


@dataclass(frozen=True, slots=True)
class TaskNumbers:
    """The columns of a task that splitting reads, with their units as stored."""

    core_count: int = 1
    cpu_time: float | None = None
    cpu_time_unit: str | None = None
    cpu_efficiency_percent: int | None = None
    base_walltime_s: int | None = None
    walltime_s_per_mb: float | None = None
    out_disk_count: int | None = None
    out_disk_unit: str | None = None
    work_disk_count: int | None = None
    work_disk_unit: str | None = None


@dataclass(frozen=True, slots=True)
class SiteNumbers:
    """What a site offers to one job. None means that it sets no limit."""

    cores: int = 1
    core_power: float = 10.0
    max_work_dir_bytes: int | None = None
    max_time_s: int | None = None
    min_time_s: int | None = None
    direct_io: bool = False


@dataclass(frozen=True, slots=True)
class SplitLimits:
    """Limits of one job. None means no limit.

    `files_per_job` is exact, the others are upper limits. `max_size_bytes` covers inputs, outputs and work folder, and
    has `SLACK_BYTES` of room for outputs on top of what the user asked for. A single file may break any of them.
    With `dynamic_events`, the number of files counts names, and a job whose expected wall time is known to be below
    `min_walltime_s` is not made at this site. `name_fields`: files of one job agree in these fields of their names.
    `merge_growth`: bytes of merged output for each byte of input, stream by stream.
    """

    files_per_job: int | None = None
    max_files: int = DEFAULT_MAX_FILES
    events_per_job: int | None = None
    max_size_bytes: int | None = None
    max_disk_bytes: int | None = None
    max_output_bytes: int | None = 10 * GB
    max_walltime_s: int | None = None
    max_total_files: int = MOST_FILES
    output_bytes_per_mb: float = 0.0
    output_bytes_per_event: float = 0.0
    work_bytes: int = 0
    base_walltime_s: float = 0.0
    walltime_s_per_event: float = 0.0
    walltime_s_per_mb: float = 0.0
    direct_io: bool = False
    dynamic_events: bool = False
    min_walltime_s: float | None = None
    respect_lumiblock: bool = False
    name_fields: tuple[int, ...] = ()
    merge_growth: float = 0.0
    boundaries: Boundaries = Boundaries.NONE

    @property
    def size_limit_bytes(self) -> int | None:
        """The size limit in force: without any other wish a job stays below 20 GB."""
        if self.max_size_bytes is None and self.files_per_job is None and self.events_per_job is None:
            return DEFAULT_SIZE_BYTES
        return self.max_size_bytes

    def without_limits(self) -> SplitLimits:
        """The same estimates, but no limit except the number of files: for boundaries that are one job each, and for
        jobs that merge on their site."""
        return replace(
            self,
            files_per_job=None,
            max_files=MOST_FILES,
            events_per_job=None,
            max_size_bytes=2**62,
            max_disk_bytes=None,
            max_output_bytes=None,
            max_walltime_s=None,
        )


def limits_for(
    rule: SplitRule, task: TaskNumbers, site: SiteNumbers, *, scouting: bool = False, merging: bool = False
) -> SplitLimits:
    """The limits of the jobs of a task at a site."""
    if merging:
        return _merge_limits(rule, task, site)
    files, events = rule.files_per_job() or None, rule.get_int("NE") or None
    most = rule.get_int("MX") if rule.get_int("DY") else None
    # Without a number of files or events, the most events of a job are all that limits it: they count at each site.
    is_free = files is None and events is None
    dynamic = bool(rule.get_int("DY")) and (site.min_time_s is not None or (bool(most) and is_free))
    if scouting and files is None and events is None and "GB" not in rule and not rule.flag("RR"):
        files = 1
    if dynamic:
        files, events = None, most or None
    elif most and events:
        events = min(events, most)
    per_mb, per_event = _output(task)
    work_bytes = _work_bytes(task)
    limits = SplitLimits(
        files_per_job=min(files, MOST_FILES) if files else None,
        max_files=min(rule.get_int("MF") or DEFAULT_MAX_FILES, MOST_FILES),
        events_per_job=events,
        max_size_bytes=_max_size(rule, site, work_bytes, counted=bool(files or events), scouting=scouting),
        max_disk_bytes=site.max_work_dir_bytes,
        max_walltime_s=_max_walltime(rule, site),
        output_bytes_per_mb=per_mb,
        output_bytes_per_event=per_event,
        work_bytes=work_bytes,
        base_walltime_s=task.base_walltime_s or 0,
        walltime_s_per_event=walltime_per_event(task, site) / _sharers(rule),
        walltime_s_per_mb=abs(task.walltime_s_per_mb or 0) if not task.cpu_time else 0,
        direct_io=site.direct_io,
        dynamic_events=dynamic,
        min_walltime_s=site.min_time_s if dynamic else None,
        respect_lumiblock=rule.flag("RL"),
        name_fields=rule.name_fields if rule.flag("UF") else (),
        boundaries=_boundaries(rule),
    )
    if rule.flag("OM"):
        return replace(limits.without_limits(), files_per_job=limits.files_per_job)
    return limits


def _merge_limits(rule: SplitRule, task: TaskNumbers, site: SiteNumbers) -> SplitLimits:
    files = rule.get_int("ZF") or None
    most_bytes = (rule.get_int("ZG") or 5) * GB
    work_bytes = max(_work_bytes(task), MERGE_WORK_BYTES)
    return SplitLimits(
        files_per_job=files,
        max_files=min(rule.get_int("ZM") or MERGE_MAX_FILES, MOST_FILES),
        events_per_job=rule.get_int("ZE") or None,
        max_size_bytes=site.max_work_dir_bytes,
        max_disk_bytes=site.max_work_dir_bytes,
        max_output_bytes=most_bytes,
        max_walltime_s=site.max_time_s,
        merge_growth=MERGE_GROWTH,
        name_fields=merge_name_fields(rule),
        work_bytes=work_bytes,
        base_walltime_s=task.base_walltime_s or 0,
        walltime_s_per_mb=task.walltime_s_per_mb or 0,
        boundaries=Boundaries.TOGETHER,
    )


def merge_name_fields(rule: SplitRule) -> tuple[int, ...]:
    """Fields of the names of unmerged files that hold what was taken from the names of inputs: before it stand fields
    of their own."""
    return tuple(range(MERGE_FIRST_FIELD, MERGE_FIRST_FIELD + len(rule.name_fields))) if rule.flag("UF") else ()


def reads_directly(
    rule: SplitRule, *, capable: bool, enforced: bool = False, from_afar: bool = False, merging: bool = False
) -> bool:
    """Whether jobs of a task read their inputs over the network instead of copying them, at a site that can or must.

    `from_afar`: the site can read from storage of other sites, too.
    """
    if merging:
        return False
    allowed = (capable and "IL" in rule) or (from_afar and rule.flag("IW"))
    return enforced or (allowed and not rule.flag("LI"))


def _sharers(rule: SplitRule) -> int:
    """Jobs among which the events of one input are shared; the copies of a cloned job do not share."""
    return 1 if "UC" in rule else rule.get_int("EC") or 1


def _boundaries(rule: SplitRule) -> Boundaries:
    value = rule.get_int("GB")
    if value is None:
        return Boundaries.NONE
    return Boundaries.SPLIT if value in (1, 2) else Boundaries.WHOLE


def _max_size(rule: SplitRule, site: SiteNumbers, work_bytes: int, *, counted: bool, scouting: bool) -> int | None:
    wanted_gb = rule.get_int("NG")
    if wanted_gb:
        return wanted_gb * GB + SLACK_BYTES + work_bytes
    if not site.direct_io:
        return site.max_work_dir_bytes
    if counted:
        return None
    return max((50_000 if scouting else 500_000) * MB, site.max_work_dir_bytes or 0)


def _max_walltime(rule: SplitRule, site: SiteNumbers) -> int | None:
    hours = rule.get_int("MW")
    both = [limit for limit in (hours * 3600 if hours else None, site.max_time_s) if limit]
    return min(both) if both else None


def _work_bytes(task: TaskNumbers) -> int:
    return (task.work_disk_count or 0) * _FACTORS[task.work_disk_unit or "B"] + WORK_MARGIN_BYTES


def _output(task: TaskNumbers) -> tuple[float, float]:
    """Bytes of output per MB of input, and per event; one of them is 0."""
    unit = (task.out_disk_unit or "B").removesuffix("Fixed")
    per_event = unit.endswith("PerEvent")
    size = float((task.out_disk_count or 0) * _FACTORS[unit.removesuffix("PerEvent")])
    return (0.0, size) if per_event else (size, 0.0)


def walltime_per_event(task: TaskNumbers, site: SiteNumbers) -> float:
    """Expected seconds an event; 0 when unknown, or when the task says that wall time does not scale."""
    efficiency = 90 if task.cpu_efficiency_percent is None else task.cpu_efficiency_percent
    power = site.core_power * max(site.cores, 1)
    if not task.cpu_time or not efficiency or power <= 0:
        return 0.0
    cpu_time = task.cpu_time / 1000 if (task.cpu_time_unit or "").startswith("m") else task.cpu_time
    return cpu_time / power / (efficiency / 100)
