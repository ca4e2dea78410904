"""What a site (a PanDA queue) offers at one moment, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ONLINE: Final = "online"
OFFLINE: Final = "offline"
TEST: Final = "test"
BROKEROFF: Final = "brokeroff"

CUT_TO_SIZE: Final = "ucore"
"""The capability of queues that cut their slots to the size of each job."""


@dataclass(frozen=True, slots=True)
class SiteView:
    """One queue. A limit of 0 is no limit.

    cores           of one job slot; 0 or -1 is any number; the largest number when capability is `ucore`
    *_memory_mb     for the whole slot
    work_dir_mb     scratch space of a slot
    running, queued, defined
                    counts of jobs; `queued` is activated + sent + starting
    core_power      HS06 per core; 0 is not known
    portion         jobs that the site takes at a time; 0 is any number
    direct_io       whether jobs may read their inputs over the local network; `direct_io_only`: they must
    """

    name: str
    status: str = ONLINE
    cores: int = 0
    max_memory_mb: int = 0
    min_memory_mb: int = 0
    max_walltime_s: int = 0
    min_walltime_s: int = 0
    work_dir_mb: int = 0
    running: int = 0
    queued: int = 0
    defined: int = 0
    core_power: float = 0.0
    capability: str = ""
    portion: int = 0
    direct_io: bool = False
    direct_io_only: bool = False

    @property
    def any_size(self) -> bool:
        """Whether jobs of any number of cores (up to `cores`, when that is set) are taken."""
        return self.cores <= 0 or self.capability == CUT_TO_SIZE
