"""One decision on where jobs of analysis go, with all that is the same for every queue worked out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from brokerage_app.cases.analysis_settings import NONE_ENDED, AnalysisFacts, AnalysisSettings, Ended
from brokerage_app.cases.analysis_weights import SHARES_WITH_CLASSES
from brokerage_app.cases.case import GridCase
from brokerage_app.formulas.locality import Inputs, Reach, reach
from brokerage_app.formulas.queues_with_input import is_virtual, queues_near, without_virtual
from brokerage_app.formulas.software import needs_of_analysis
from brokerage_app.policy.classes import SiteClass, TaskClass
from brokerage_app.policy.stabiliser import UserRoom, share_rate, user_room
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.needs import TaskNeeds, names_queue
from brokerage_app.vocabulary.site_view import Counts, SiteView
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import Grid

ANY_DATA_PRIORITY: Final = 2000
"""From this priority on input may be moved."""
HOUR_S: Final = 3600
AUTO: Final = "AUTO"
"""In a task's list of sites: others may be used when none of the listed is left."""


class AnalysisCase(GridCase):
    """
    by_data         the pass that keeps to queues near the input; the other one may move it
    near            where the input is
    may_move        the task need not stay near its input when the queues there have problems of the moment
    has_source      every dataset can be fetched from somewhere
    unsent          else the first that cannot, and the storage that has it; None also while a queue that reads it there may
                    be chosen by its name
    bound           the queue to which the work is bound, "" is none; `listed`: queues among which it is to stay
    share_ratio     queued for each running job of the share on the whole grid; infinite where none runs
    task_class      of the task in shares that have classes
    """

    __slots__ = (
        "_rooms",
        "bound",
        "by_data",
        "facts",
        "has_source",
        "listed",
        "may_move",
        "missing",
        "near",
        "settings",
        "share_ratio",
        "task_class",
        "unsent",
    )

    def __init__(
        self, needs: TaskNeeds, grid: Grid, settings: AnalysisSettings, facts: AnalysisFacts, *, by_data: bool = True
    ) -> None:
        bound, listed = _bound(needs, grid)
        super().__init__(
            needs,
            grid,
            is_single=bool(bound),
            is_bound=bool(bound or listed),
            min_free_gb=settings.min_output_gb,
            disk_io_limit=settings.disk_io_limit,
            analysis=True,
            platform=needs_of_analysis(
                needs.trans_home,
                needs.trans_uses,
                needs.architecture,
                container=needs.container,
                only_tags=needs.container_tags_only,
            ),
        )
        self.settings, self.facts, self.by_data = settings, facts, by_data
        self.bound, self.listed = bound, listed
        self.bound_to = (bound,) if bound else tuple(sorted(listed))
        self.wanted = tuple(name for name in needs.included_sites if name != AUTO)
        self.near = queues_near(needs.inputs, _readers(grid), virtual=_may_use_virtual(needs))
        self.missing, unsent = self._reach()
        self.has_source = self.missing is None and unsent is None
        self.unsent = None if any(map(self._may_be_named, self.near.with_data)) else unsent
        self.may_move = _may_move(needs, settings)
        self.share_ratio = self._share_ratio()
        self.task_class = _class(needs.share, facts)
        self._rooms: dict[str, UserRoom] = {}

    def _may_be_named(self, name: str) -> bool:
        """Whether what the task says of queues lets it go to this one."""
        site = self.grid.sites.get(name)
        if site is None or names_queue(self.needs.excluded_sites, site):
            return False
        if self.bound_to:
            return self.is_bound_to(site)
        return not self.wanted or AUTO in self.needs.included_sites or names_queue(self.wanted, site)

    def _reach(self) -> tuple[Skip | None, Reach | None]:
        """What stops the task because of its input, and the first dataset that cannot be fetched from elsewhere."""
        settings, unsent = self.settings, None
        inputs = Inputs(without_virtual(self.needs.inputs))
        for one in reach(
            inputs, self.grid.endpoints.get, most_missing=settings.most_missing, least_percent=settings.least_percent
        ):
            data = one.data
            if not one.complete:
                most = max((replica.files for replica in data.replicas.values()), default=0)
                says = "{:file is|files are} read, at most {} of them at one place: the dataset {}"
                return Skip("", codes.INPUT_INCOMPLETE, says, (data.files, most, data.name)), None
            if not one.readable:
                says = "the dataset {} is complete only at {}, which cannot be read now{}"
                names, why = ", ".join(one.complete[:5]), self.grid.why_away(one.complete)
                return Skip("", codes.INPUT_IN_DOWNTIME, says, (data.name, names, why)), None
            if not one.sending and unsent is None:
                unsent = one
        return None, unsent

    def _share_ratio(self) -> float:
        queued = running = 0
        seen: set[str] = set()
        for site in self.grid.sites.values():
            if site.queue in seen:
                continue
            seen.add(site.queue)
            counts = self.counts(site)
            queued, running = queued + counts.queued, running + counts.running
        return queued / running if running else float("inf")

    @property
    def is_union(self) -> bool:
        """Whether no queue has all datasets."""
        return self.near.union

    def is_preassigned(self, site: SiteView) -> bool:
        """Whether the work is bound to this queue, or to the queue of which it is a part."""
        return bool(self.bound) and self.bound in (site.name, site.parent)

    def is_bound_to(self, site: SiteView) -> bool:
        return self.is_preassigned(site) or site.name in self.listed or site.parent in self.listed

    def is_satellite(self, site: SiteView) -> bool:
        """Whether input has to be brought to a queue: what counts for analysis is where the data are."""
        return self.near.datasets > 0 and site.name not in self.near.with_data

    def ended(self, site: SiteView) -> Ended:
        return self.facts.ended.get(site.queue, NONE_ENDED)

    def site_class(self, site: SiteView) -> SiteClass:
        return self.facts.site_classes.get(site.queue, SiteClass.MID)

    def type_at(self, site: SiteView) -> str:
        """The resource type of the jobs at a queue: that of the pseudo queue, else the task's; "" is not known."""
        return site.name[len(site.parent) + 1 :] if site.parent else self.needs.resource_type

    def of_type(self, site: SiteView) -> Counts:
        """Jobs of the share and of that resource type at a queue."""
        kind = self.type_at(site)
        return self.counts_of_type(site, kind) if kind else self.counts(site)

    def room(self, site: SiteView) -> UserRoom:
        """What the user may have waiting at a queue."""
        found = self._rooms.get(site.name)
        if found is None:
            counts, everybody = self.counts(site), site.users.get(self.share, {})
            own = everybody.get(self.needs.user)
            found = self._rooms[site.name] = user_room(
                queued=counts.queued,
                running=counts.running,
                started_per_h=share_rate(site.started_per_h, counts.running, self.totals(site).running),
                users=len(everybody),
                user_queued=own.queued if own is not None else 0,
                user_running=own.running if own is not None else 0,
                limits=self.settings.stabiliser,
            )
        return found

    def has_virtual(self, site: SiteView) -> bool:
        return any(map(is_virtual, self.storage(site).inputs))


def _bound(needs: TaskNeeds, grid: Grid) -> tuple[str, frozenset[str]]:
    """The queue that the task names, or the queues that it lists; a name that is an endpoint stands for its readers.

    Names that nobody has still bind, so a task whose queue was deleted waits; only merging goes elsewhere then.
    """
    known = {site.queue for site in grid.sites.values()} | set(grid.sites)
    if needs.preassigned_site in known:
        return needs.preassigned_site, frozenset()
    listed: set[str] = set()
    for name in (needs.preassigned_site, *needs.listed_sites):
        listed.update((name,) if name in known else _readers(grid).get(name, ()))
    if not listed and not needs.merging:
        listed.update(filter(None, (needs.preassigned_site, *needs.listed_sites)))
    return "", frozenset(listed)


def _readers(grid: Grid) -> Mapping[str, tuple[str, ...]]:
    """Names of the queues whose analysis jobs read from an endpoint, by endpoint."""
    found: dict[str, tuple[str, ...]] | None = grid.derived.get("analysis readers")
    if found is None:
        lists: dict[str, list[str]] = {}
        for site in grid.sites.values():
            for endpoint in site.analysis_inputs or site.inputs:
                lists.setdefault(endpoint, []).append(site.name)
        found = {endpoint: tuple(sorted(names)) for endpoint, names in lists.items()}
        grid.derived["analysis readers"] = found
    return found


def _may_use_virtual(needs: TaskNeeds) -> bool:
    return not (needs.merging or needs.scouting or needs.avoid_vp or needs.local_io)


def _may_move(needs: TaskNeeds, settings: AnalysisSettings) -> bool:
    if needs.priority >= ANY_DATA_PRIORITY:
        return True
    if settings.io_cutoff is not None and needs.io_intensity is not None and needs.io_intensity <= settings.io_cutoff:
        return True
    timeout = settings.check_timeout_h
    return timeout is not None and needs.frozen_s is not None and needs.frozen_s > timeout * HOUR_S


def _class(share: str, facts: AnalysisFacts) -> TaskClass | None:
    if share not in SHARES_WITH_CLASSES:
        return None
    return facts.task_class if facts.task_class is not None else TaskClass.A
