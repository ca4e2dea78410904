"""One decision of the broker for whoever has no rules of their own."""

from __future__ import annotations

from typing import Final

from brokerage_app.cases.case import PlaceCase
from brokerage_app.formulas import software
from brokerage_app.formulas.queue_room import ALONE, Crowd
from brokerage_app.formulas.storage import LEAST_SPACE_GB, hard_to_read, shut
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.snapshot import Grid

ANALYSIS: Final = frozenset({"user", "panda"})
"""Labels of jobs that use the storage which a queue has for analysis."""


class GenericCase(PlaceCase):
    """What the broker asks of storage and software besides the plain numbers.

    unread      datasets that not every queue can read now
    shut        endpoints to which something cannot be written now, or that have too little space; the case asks of no other
    crowd       users who want places in queues
    """

    __slots__ = ("crowd", "shut", "unread")

    def __init__(
        self,
        needs: TaskNeeds,
        grid: Grid,
        min_free_gb: float = LEAST_SPACE_GB,
        crowd: Crowd = ALONE,
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
        self.crowd = crowd
        self.shut = shut(grid, min_free_gb)
        self.unread = hard_to_read(needs.inputs, grid)
