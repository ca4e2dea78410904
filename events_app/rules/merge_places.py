"""Where a merge job of events runs: where its consumer did, or near what it reads. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from brokerage_app.vocabulary.needs import names_queue
from brokerage_app.vocabulary.site_view import SiteView

KEEPS_MERGES: Final = frozenset({"localEsMerge", "localEsMergeNC"})
"""Switches of a queue that merges what its own consumers have made."""
LONG_S: Final = 86_400
"""A queue with a shorter limit of time gets no merge jobs of others."""


def takes_merges(queue: SiteView, *, analysis: bool) -> bool:
    """Whether a queue takes merge jobs of other queues' consumers: single slots of a day or longer, which are not kept for
    event service, and whose jobs have a storage to write to. It has to take the jobs of users where the task is one of them."""
    fits = queue.type == "unified" or queue.type == ("analysis" if analysis else "production")
    single = queue.capability == "ucore" or queue.cores == 1
    long = not queue.max_walltime_s or queue.max_walltime_s >= LONG_S
    may = queue.status == "online" and queue.job_seed != "es" and not queue.jumbo and queue.pilots_3h != 0
    return fits and single and long and may and bool(queue.written(analysis=analysis))


def merge_queue(
    at: SiteView, near: Iterable[SiteView], *, analysis: bool, excluded: Collection[str], included: Collection[str]
) -> str:
    """The queue of a merge job whose consumer was `at` a queue, and whose inputs or outputs lie near others.

    Without a pledge of its own queue (`localEsMerge`) it runs at the one near that most pilots call; of equals at its own,
    which has it also where none near may. `excluded` and `included` are the task's lists of queues.
    """
    if KEEPS_MERGES & at.switches.keys():
        return at.name
    found = [
        queue
        for queue in near
        if takes_merges(queue, analysis=analysis)
        and not names_queue(tuple(excluded), queue)
        and (not included or names_queue(tuple(included), queue))
    ]
    if not found:
        return at.name
    return min(found, key=lambda queue: (-(queue.pilots_3h or 0), queue.name != at.name, queue.name)).name
