"""One decision of the broker for whoever has no rules of their own."""

from __future__ import annotations

from typing import Final

from brokerage_app.cases.case import NOTHING_SAID, PlaceCase
from brokerage_app.formulas import software
from brokerage_app.formulas.queue_room import ALONE, QueueUsers
from brokerage_app.formulas.storage import LEAST_SPACE_GB, hard_to_read, shut
from brokerage_app.formulas.walltime import walltime_at
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.skip import Words
from brokerage_app.vocabulary.snapshot import Grid

ANALYSIS: Final = frozenset({"user", "panda"})
"""Labels of jobs that use the storage which a queue has for analysis."""


class GenericCase(PlaceCase):
    """What the broker asks of storage and software besides the plain numbers.

    unread      datasets that not every queue can read now
    shut        endpoints to which something cannot be written now, or that have too little space; the case asks of no other
    queue_users       users who want places in queues
    """

    __slots__ = ("queue_users", "shut", "unread")

    takes_whole_slot = True

    def __init__(
        self,
        needs: TaskNeeds,
        grid: Grid,
        min_free_gb: float = LEAST_SPACE_GB,
        queue_users: QueueUsers = ALONE,
    ) -> None:
        super().__init__(
            needs,
            grid,
            min_free_gb=min_free_gb,
            analysis=needs.label in ANALYSIS,
            platform=software.needs_of_any(
                needs.trans_home,
                needs.trans_uses,
                needs.architecture,
                container=needs.container,
                only_tags=needs.container_tags_only,
            ),
        )
        self.queue_users = queue_users
        self.shut = shut(grid, min_free_gb)
        self.unread = hard_to_read(needs.inputs, grid)

    def memory_mb(self, site: SiteView) -> int:
        return self.needs.memory_at(site)

    def memory_in_words(self, site: SiteView) -> Words:
        needs = self.needs
        if not needs.memory_per_core:
            return NOTHING_SAID
        return " ({} MB x {:core|cores} + {} MB)", (needs.memory_mb, needs.cores_at(site), needs.base_memory_mb)

    def scratch_at(self, site: SiteView) -> int:
        needs = self.needs
        return needs.disk_mb - int(needs.atom_mb) if needs.reads_directly(site) else needs.disk_mb

    def time_at(self, site: SiteView) -> int:
        return walltime_at(self.needs, site)
