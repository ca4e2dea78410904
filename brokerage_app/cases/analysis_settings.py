"""Inputs of the broker of analysis besides the task and the grid: its parameters, and facts about user and task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from brokerage_app.cases.analysis_weights import BASE_WEIGHTS, BaseWeight
from brokerage_app.policy.classes import SiteClass, TaskClass
from brokerage_app.policy.configuration import Configuration
from brokerage_app.policy.stabiliser import StabiliserLimits
from brokerage_app.policy.userthrottle import Caps, Quota, ShareState, UserUsage

MOST_CHOSEN: Final = 10
ANY_DISK_IO: Final = 1e10


@dataclass(frozen=True, slots=True)
class AnalysisSettings:
    """Parameters of the configuration (sections 3.3 and 3.4 of the reference of brokerage), with their defaults.

    base_weight          which of the formulas of analysis_weights
    user_caps, group_caps  most running jobs and cores of a user, or of a working group
    slots_a              USER_USAGE_THRESHOLD_A
    window_h             period over which ended jobs are counted; `min_bad`: failed and closed ones that a queue may have
    most_missing, least_percent
                         when a replica counts as complete
    min_output_gb, min_input_gb
                         space that the storage of outputs, and of input that is moved there, must have left
    disk_io_limit        kB/s per core of queues that say nothing else
    io_cutoff, check_timeout_h
                         up to that I/O intensity, or after that time without jobs, input may be moved; None: never
    overload_min_queued, overload_offset
                         when a queue is busier than others
    min_weight           0 is any
    most_chosen          queues chosen at most
    """

    base_weight: BaseWeight = "original"
    stabiliser: StabiliserLimits = field(default_factory=StabiliserLimits)
    user_caps: Caps = field(default_factory=Caps)
    group_caps: Caps = field(default_factory=Caps)
    slots_a: float = 1000.0
    window_h: float = 6.0
    min_bad: int = 5
    most_missing: int = 10
    least_percent: float = 90.0
    min_output_gb: float = 200.0
    min_input_gb: float = 200.0
    disk_io_limit: float = ANY_DISK_IO
    io_cutoff: float | None = None
    check_timeout_h: float | None = None
    overload_min_queued: int = 20
    overload_offset: float = 1.2
    min_weight: float = 0.0
    most_chosen: int = MOST_CHOSEN

    @classmethod
    def from_configuration(
        cls, configuration: Configuration, *, vo: str = "", label: str = "", share: str = ""
    ) -> AnalysisSettings:
        def own(key: str) -> float | None:
            value = configuration.get("anal_jobbroker", key, vo=vo)
            return None if value is None else float(value)

        def number(key: str) -> float:
            return float(configuration.get("anal_jobbroker", key, vo=vo))

        weight = configuration.get("anal_jobbroker", "BASE_WEIGHT", vo=vo)
        disk_io = configuration.get("jobbroker", "MAX_DISKIO_DEFAULT", vo=vo)
        return cls(
            # What nobody knows is the usual one: a word that is mistyped must not stop all analysis.
            base_weight=weight if weight in BASE_WEIGHTS else "original",
            stabiliser=StabiliserLimits.from_configuration(configuration, vo=vo),
            user_caps=Caps.from_configuration(configuration, group=False, vo=vo),
            group_caps=Caps.from_configuration(configuration, group=True, vo=vo),
            slots_a=float(configuration.get("analy_eval", "USER_USAGE_THRESHOLD_A", vo=vo)),
            window_h=number("TW_DONE_JOB_STAT"),
            min_bad=int(number("MIN_BAD_JOBS_TO_SKIP_PQ")),
            most_missing=int(number("MAX_MISSING_INPUT_FILES")),
            least_percent=number("MIN_INPUT_COMPLETENESS"),
            min_output_gb=number("STORAGE_MIN_FREE_SIZE_OUTPUT"),
            min_input_gb=float(configuration.get("jobbroker", "STORAGE_MIN_FREE_SIZE", vo=vo)),
            disk_io_limit=ANY_DISK_IO if disk_io is None else float(disk_io),
            io_cutoff=own("IO_INTENSITY_CUTOFF_USER"),
            check_timeout_h=own("DATA_CHECK_TIMEOUT_USER"),
            overload_min_queued=int(number("OVERLOAD_MIN_QUEUE")),
            overload_offset=number("OVERLOAD_RATIO_OFFSET"),
            min_weight=float(configuration.get("jobbroker", "MIN_WEIGHT", label, share, vo=vo)),
        )


@dataclass(frozen=True, slots=True)
class Ended:
    """Jobs of the task that ended at a queue lately."""

    finished: int = 0
    failed: int = 0
    closed: int = 0


NONE_ENDED: Final = Ended()


@dataclass(frozen=True, slots=True)
class AnalysisFacts:
    """Facts about the task's user and the task, besides its needs.

    who             the user or the working group whose jobs `usage` counts, in words; `is_group` says which
    quotas          global disk quotas of the user
    share           how much of the share is used
    task_class      None when it is not known
    site_classes    by queue; unknown ones are mid
    ended           jobs of the task that ended within the window, by queue
    """

    who: str = "the user"
    is_group: bool = False
    usage: UserUsage = field(default_factory=UserUsage)
    quotas: tuple[Quota, ...] = ()
    share: ShareState = field(default_factory=ShareState)
    task_class: TaskClass | None = None
    site_classes: Mapping[str, SiteClass] = field(default_factory=dict)
    ended: Mapping[str, Ended] = field(default_factory=dict)


NO_FACTS: Final = AnalysisFacts()
