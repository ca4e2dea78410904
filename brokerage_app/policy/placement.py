"""The work queue and the global share of a task. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from brokerage_app.policy.attributes import TaskAttributes
from brokerage_app.policy.shares import ShareTree, compared
from brokerage_app.policy.workqueues import Tried, WorkQueues
from jedisite.vocabulary.words import nearest

NO_SHARE: Final = "task definition does not match any global share"
NAMED: Final = 12
"""Shares that are named where none takes a task."""


class NoPlaceError(ValueError):
    """A task belongs to no work queue or to no share. `field` is the task parameter at fault, empty when it is no single one."""

    def __init__(self, sentence: str, field: str = "") -> None:
        super().__init__(sentence)
        self.field = field


@dataclass(frozen=True, slots=True)
class Wish:
    """The work queue and the share that a task asks for by name."""

    queue: str | None = None
    share: str | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """None where nothing is configured; the share is then the one that the task asks for."""

    queue_id: int | None
    share: str | None


@dataclass(frozen=True, slots=True)
class Explained:
    """What `place` says, with every queue and share that was tried in order. `faults` are sentences."""

    queue: str | None
    partition: str | None
    share: str | None
    queues_tried: tuple[Tried, ...]
    shares_tried: tuple[Tried, ...]
    faults: tuple[str, ...]


def place(task: TaskAttributes, wish: Wish, queues: WorkQueues, tree: ShareTree) -> Placement:
    """The queue and share of a task. Raises NoPlaceError when queues or shares are configured and none takes it."""
    queue_id, share = None, wish.share
    if queues:
        mapped = queues.choose(task, wish.queue)
        if mapped.queue is None:
            raise NoPlaceError(mapped.error)
        queue_id = mapped.queue.id
    if tree:
        if wish.share is not None:
            check_leaf(wish.share, tree)
        leaf = tree.choose(task, wish.share)
        if leaf is None:
            raise NoPlaceError(no_share(task, tree))
        share = leaf.name
    return Placement(queue_id, share)


def no_share(task: TaskAttributes, tree: ShareTree) -> str:
    """The sentence that a task matches no share: what was compared, with which shares, and who can help."""
    leaves = [leaf.name for leaf in tree.leaves]
    more = f" and {len(leaves) - NAMED} more" if len(leaves) > NAMED else ""
    return (
        f"{NO_SHARE}: {compared(task)}; the shares are {', '.join(leaves[:NAMED])}{more}. A production manager can name one of "
        "them (gshare); an administrator can change which tasks a share accepts"
    )


def check_leaf(share: str, tree: ShareTree) -> None:
    """Raises NoPlaceError when this is not a share for tasks."""
    if not tree:
        raise NoPlaceError(f"{share!r} is not a global share: this site has none", "gshare")
    if not tree.is_leaf(share):
        leaves = [leaf.name for leaf in tree.leaves]
        what = "has shares below it" if share in tree.shares else "is not a global share"
        near = "" if share in tree.shares else nearest(share, leaves)
        meant = f" (did you mean {near}?)" if near else ""
        raise NoPlaceError(f"{share!r} {what}{meant}; the shares for tasks are {', '.join(leaves)}", "gshare")


def explain(task: TaskAttributes, wish: Wish, queues: WorkQueues, tree: ShareTree) -> Explained:
    """Why a task belongs where it does, by the queues and shares that are configured now."""
    mapped, queues_tried = queues.explain(task, wish.queue)
    leaf, shares_tried = tree.explain(task, wish.share)
    faults = []
    if queues and mapped.queue is None:
        faults.append(mapped.error)
    if tree and leaf is None:
        faults.append(no_share(task, tree))
    elif leaf is not None and wish.share not in (None, leaf.name):
        faults.append(f"{wish.share!r} is not a share for tasks")
    return Explained(
        mapped.queue.name if mapped.queue else None,
        mapped.partition.name if mapped.partition else None,
        leaf.name if leaf else None,
        queues_tried if queues else (),
        shares_tried if tree else (),
        tuple(faults),
    )
