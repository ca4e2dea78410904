"""Black holes: worker nodes that take many jobs and fail them quickly, while the rest of their site works. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from jedisite.vocabulary.words import plural

LEAST_FAILED = 10
"""Failed jobs from which on a node is looked at."""
LEAST_SHARE = 0.8
"""Of the jobs that ended on the node, the part that failed at least."""
TIMES_OTHERS = 2.0
"""How many times the part that fails elsewhere at the site this must be."""
SHORT_S = 300
"""Failures of this median length are short, whatever is usual at the site."""
SHORT_SHARE = 0.5
"""Else they are short when their median is below this part of the median of the site's other nodes."""


@dataclass(frozen=True, slots=True)
class NodeEnds:
    """Jobs that ended on one node in some time, and the median walltime of those that failed."""

    site: str
    node: str
    finished: int
    failed: int
    median_failed_s: float

    @property
    def share(self) -> float:
        return self.failed / max(self.finished + self.failed, 1)


@dataclass(frozen=True, slots=True)
class SiteEnds:
    """The same of a whole site."""

    finished: int
    failed: int


@dataclass(frozen=True, slots=True)
class BlackHole:
    """A node that should be looked at. `others_share`: of the jobs elsewhere at the site, the part that failed."""

    ends: NodeEnds
    others_share: float

    @property
    def sentence(self) -> str:
        ends = self.ends
        return (
            f"{ends.failed} of {plural(ends.finished + ends.failed, 'job')} failed on {ends.node}, half of them within "
            f"{round(ends.median_failed_s)} s; elsewhere at {ends.site} {self.others_share:.0%} of the jobs fail."
        )


def black_holes(nodes: Sequence[NodeEnds], sites: dict[str, SiteEnds]) -> list[BlackHole]:
    """The black holes among some nodes, those with most failed jobs first.

    `sites` holds the ends of all nodes of a site. A node is compared with the rest of its site: of one where nothing else
    ended nothing can be said.
    """
    found = []
    for node in nodes:
        site = sites.get(node.site)
        if site is None or node.failed < LEAST_FAILED or node.share < LEAST_SHARE:
            continue
        finished, failed = max(site.finished - node.finished, 0), max(site.failed - node.failed, 0)
        if not finished + failed:
            continue
        others = failed / (finished + failed)
        usual = _median(n.median_failed_s for n in nodes if n.site == node.site and n.node != node.node)
        short = node.median_failed_s <= SHORT_S or (usual is not None and node.median_failed_s < SHORT_SHARE * usual)
        if short and node.share >= TIMES_OTHERS * others:
            found.append(BlackHole(node, others))
    return sorted(found, key=lambda hole: (-hole.ends.failed, hole.ends.site, hole.ends.node))


def _median(values: Iterable[float]) -> float | None:
    found = list(values)
    return median(found) if found else None
