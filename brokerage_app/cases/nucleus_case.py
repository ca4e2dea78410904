"""One choice of a nucleus: what is the same for all nuclei, and what each has of storage and of the task's input. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from brokerage_app.cases.case import Case
from brokerage_app.cases.gathering import NO_WORK, Gathering, Output, RemainingWork
from brokerage_app.formulas.locality import Here, Inputs
from brokerage_app.policy.configuration import DEFAULTS, Configuration
from brokerage_app.vocabulary.needs import InputData, TaskNeeds
from brokerage_app.vocabulary.snapshot import Endpoint, Grid, Nucleus
from jedisite.vocabulary.patterns import Pattern, PatternError, compiled

GB_A_TB: Final = 1024
MB_A_GB: Final = 1024
DAY_S: Final = 86_400
CORE_POWER_HS06: Final = 10
OUTPUT_GB_A_DAY: Final = 0.25
"""Output of a core of 10 HS06 in a day (normalizedExpOutSize)."""
RW_OFFSET: Final = 50.0
"""Less remaining work than this makes no difference between nuclei."""
DATABASE_RELEASE: Final = "ddo"
OUTPUT_ACTIVITY: Final = "Production Output"


@dataclass(frozen=True, slots=True)
class TaskBrokerSettings:
    """The parameters of the component taskbrokerage, for one VO and share.

    legacy_rw   remaining work below 50 counts as 1, as in today's system, where the document says 50
    """

    disk_threshold_tb: float = 100.0
    free_disk_cutoff_tb: float = 1000.0
    input_size_threshold_gb: float = 1.0
    input_size_fraction_percent: float = 10.0
    input_num_threshold: int = 100
    input_num_fraction_percent: float = 10.0
    min_io_intensity_kbps: float = 200.0
    min_input_size_gb: float = 10_000.0
    max_priority: int = 800
    location_check_days: float = 7.0
    queued_cap: int = 2000
    legacy_rw: bool = False


def settings_of(configuration: Configuration = DEFAULTS, *, vo: str = "", share: str = "") -> TaskBrokerSettings:
    """The settings that hold for tasks of a VO and share."""

    def read(key: str, *suffixes: str) -> float:
        return float(configuration.get("taskbrokerage", key, *suffixes, vo=vo))

    return TaskBrokerSettings(
        disk_threshold_tb=read("DISK_THRESHOLD", share),
        free_disk_cutoff_tb=read("FREE_DISK_CUTOFF"),
        input_size_threshold_gb=read("INPUT_SIZE_THRESHOLD"),
        input_size_fraction_percent=read("INPUT_SIZE_FRACTION"),
        input_num_threshold=int(read("INPUT_NUM_THRESHOLD")),
        input_num_fraction_percent=read("INPUT_NUM_FRACTION"),
        min_io_intensity_kbps=read("MIN_IO_INTENSITY_WITH_LOCAL_DATA"),
        min_input_size_gb=read("MIN_INPUT_SIZE_WITH_LOCAL_DATA"),
        max_priority=int(read("MAX_TASK_PRIO_WITH_LOCAL_DATA")),
        location_check_days=read("DATA_LOCATION_CHECK_PERIOD"),
        queued_cap=int(read("NQUEUED_NUC_CAP")),
        legacy_rw=bool(configuration.get("taskbrokerage", "LEGACY_RW", vo=vo)),
    )


class Stored(NamedTuple):
    """The storage of a nucleus that fits one output; None where none does."""

    output: Output
    endpoint: Endpoint | None


class NucleusCase(Case):
    """Made once for a task. `with_able` and `without_locality` give the case as it is after the steps that ask all nuclei.

    candidates   by name
    able         nuclei at which jobs can run; None before that was asked
    queue_words  why not at the others
    locality     whether the place of the input counts
    """

    __slots__ = (
        "able",
        "candidates",
        "gathering",
        "inputs",
        "local",
        "locality",
        "parent_nucleus",
        "queue_words",
        "settings",
        "stored",
        "work",
    )

    def __init__(
        self,
        needs: TaskNeeds,
        grid: Grid,
        gathering: Gathering,
        settings: TaskBrokerSettings,
        work: RemainingWork = NO_WORK,
    ) -> None:
        super().__init__(needs, grid)
        self.gathering, self.settings, self.work = gathering, settings, work
        self.candidates = tuple(candidates(needs, grid))
        self.inputs = Inputs(counted_inputs(needs.inputs, on_master=gathering.on_master))
        self.stored: Mapping[str, tuple[Stored, ...]] = {
            nucleus.name: storages(nucleus, gathering.outputs, grid, full_chain=bool(needs.full_chain))
            for nucleus in self.candidates
        }
        self.local: Mapping[str, Here] = {n.name: self.inputs.at(n.inputs) for n in self.candidates}
        self.parent_nucleus = _binding_parent(gathering, grid) if needs.full_chain else ""
        self.able: frozenset[str] | None = None
        self.queue_words: Mapping[str, str] = {}
        waited_too_long = needs.frozen_s is not None and needs.frozen_s > settings.location_check_days * DAY_S
        self.locality = bool(self.inputs.datasets) and not waited_too_long

    def with_able(self, able: Iterable[str], words: Mapping[str, str]) -> NucleusCase:
        case = self._copy()
        case.able, case.queue_words = frozenset(able), words
        return case

    def without_locality(self) -> NucleusCase:
        case = self._copy()
        case.locality = False
        return case

    def _copy(self) -> NucleusCase:
        case = NucleusCase.__new__(NucleusCase)
        for name in ("needs", "grid", *NucleusCase.__slots__):
            setattr(case, name, getattr(self, name))
        return case

    @property
    def input_gb(self) -> float:
        return self.inputs.size_mb / MB_A_GB

    @property
    def is_io_heavy(self) -> bool:
        """Whether the part of the input that is local counts in the weight; a task that says nothing is heavy."""
        intensity = self.needs.io_intensity
        return intensity is None or intensity > self.settings.min_io_intensity_kbps

    @property
    def locality_may_be_dropped(self) -> bool:
        """Whether the task may go where its input is not, if it is nowhere. One that says nothing of its I/O is light."""
        settings, intensity = self.settings, self.needs.io_intensity
        light = intensity is None or intensity <= settings.min_io_intensity_kbps
        return (light and self.input_gb <= settings.min_input_size_gb) or self.needs.priority >= settings.max_priority

    def projected_gb(self, nucleus: str) -> int:
        """Space that the outputs of the tasks of a nucleus will take."""
        return int(self.work.full(nucleus) / CORE_POWER_HS06 / DAY_S * OUTPUT_GB_A_DAY)

    def left_gb(self, nucleus: str, endpoint: Endpoint) -> float:
        """Space that outputs of the tasks of a nucleus will leave; what is not known is not there."""
        return (endpoint.usable_gb or 0.0) - self.projected_gb(nucleus)

    def tightest(self, nucleus: Nucleus) -> Endpoint | None:
        """The storage of the outputs with the smallest part of its space left; the default one when none is asked for."""
        found = {s.endpoint.name: s.endpoint for s in self.stored[nucleus.name] if s.endpoint is not None}
        if not found:
            return default_storage(nucleus, self.grid)
        return min(found.values(), key=lambda e: (self.left_gb(nucleus.name, e) / (e.space_total_gb or 1.0), e.name))


def candidates(needs: TaskNeeds, grid: Grid) -> list[Nucleus]:
    """All nuclei; for whole chains of tasks also satellites that take such chains."""
    some = (n for n in grid.nuclei.values() if not n.is_satellite or (needs.full_chain and n.bare))
    return sorted(some, key=lambda nucleus: nucleus.name)


def counted_inputs(inputs: Iterable[InputData], *, on_master: bool) -> list[InputData]:
    """The inputs whose place counts: those with files, but for database releases, which are everywhere."""
    return [
        data
        for data in inputs
        if data.files > 0
        and (data.is_primary or not on_master)
        and not data.name.rpartition(":")[2].startswith(DATABASE_RELEASE)
    ]


def _binding_parent(gathering: Gathering, grid: Grid) -> str:
    """The nucleus of the parent task, when that stays there with all of its chain."""
    parent = grid.nuclei.get(gathering.parent_nucleus)
    if parent is None or not gathering.parent_full_chain or not parent.bare:
        return ""
    return parent.name if takes_chain(gathering.parent_full_chain, parent.bare) else ""


def takes_chain(full_chain: str, bare: str) -> bool:
    """Whether a nucleus keeps a whole chain that asks in these words (JEDI brokerage document, full chain)."""
    return bare in {"only": ("only",), "require": ("only", "allow"), "capable": ("only", "allow")}.get(full_chain, ())


def storages(nucleus: Nucleus, outputs: Iterable[Output], grid: Grid, *, full_chain: bool) -> tuple[Stored, ...]:
    """The storage for each output. Outputs of whole chains go to the secondary nucleus, if there is one."""
    where = gathers_at(nucleus, grid, full_chain=full_chain)
    return tuple(Stored(o, storage_for(o.wants, where, grid)) for o in outputs if not o.is_distributed)


def gathers_at(nucleus: Nucleus, grid: Grid, *, full_chain: bool) -> Nucleus:
    return grid.nuclei.get(nucleus.secondary, nucleus) if full_chain and nucleus.secondary else nucleus


def storage_for(wants: str, nucleus: Nucleus, grid: Grid) -> Endpoint | None:
    """The endpoint of that name, else the first whose name has that pattern, else the first of that type."""
    if not wants:
        return default_storage(nucleus, grid)
    own = [grid.endpoints[name] for name in nucleus.outputs if name in grid.endpoints]
    pattern = _pattern(wants)
    return next(
        (
            endpoint
            for fits in (
                lambda e: e.name == wants,
                lambda e: pattern is not None and pattern.search(e.name),
                lambda e: e.type == wants.replace("ATLAS", ""),
            )
            for endpoint in own
            if fits(endpoint)
        ),
        None,
    )


def _pattern(text: str) -> Pattern | None:
    try:
        return compiled(text)
    except PatternError:
        return None


def default_storage(nucleus: Nucleus, grid: Grid) -> Endpoint | None:
    names = (nucleus.default_output, *nucleus.outputs)
    return next((grid.endpoints[name] for name in names if name in grid.endpoints), None)


def nowhere_complete(case: NucleusCase) -> InputData | None:
    """The first input of which no complete copy can be read over the wide-area network; None when all can.

    Of a dataset that is distributed by intention no storage has all, and a task may do with what there is.
    """
    if case.needs.incomplete_input:
        return None
    for data in case.inputs.datasets:
        if data.distributed and data.replicas:
            continue
        if not any(replica.complete and _readable(case.grid.endpoints.get(n)) for n, replica in data.replicas.items()):
            return data
    return None


def _readable(endpoint: Endpoint | None) -> bool:
    """An endpoint that nobody has described counts as up."""
    return endpoint is None or endpoint.is_up("read_wan")


def site_as_nucleus(name: str, grid: Grid) -> Nucleus | None:
    """The nucleus of that name, or the site of that name as if it were one; None when nothing has that name."""
    if name in grid.nuclei:
        return grid.nuclei[name]
    queues = [queue for queue in grid.sites.values() if queue.site == name]
    if not queues:
        return None
    outputs = dict.fromkeys(o for queue in queues for o in queue.outputs if o in grid.endpoints)
    local = tuple(o for o in outputs if grid.endpoints[o].site == name) or tuple(outputs)
    return Nucleus(name, queues=tuple(q.name for q in queues), outputs=local, default_output=next(iter(outputs), ""))
