"""The work queues and global shares of this installation, read from the database."""

from __future__ import annotations

from brokerage_app.models import GlobalShare, WorkQueue
from brokerage_app.policy.shares import Share, ShareTree
from brokerage_app.policy.workqueues import QueueRow, WorkQueues


def queue_row(row: WorkQueue) -> QueueRow:
    """A row as the rules read it. One that is not stored yet has the id 0, which no stored one has."""
    return QueueRow(
        row.id or 0,
        row.name,
        row.type,
        row.vo,
        share=row.share,
        order=row.order,
        criteria=row.criteria,
        variables=row.variables,
        partition_id=row.partition_id,
        stretchable=bool(row.stretchable),
        status=row.status,
        function=row.function,
    )


def queue_rows() -> list[QueueRow]:
    return [queue_row(row) for row in WorkQueue.objects.order_by("id")]


def share_rows() -> list[Share]:
    """Shares in the order in which siblings are asked: by their queue ids, then by name."""
    return [
        Share(
            row.name,
            row.value,
            row.parent_id,
            prod_source_label=row.prod_source_label,
            working_group=row.working_group,
            campaign=row.campaign,
            processing_type=row.processing_type,
            trans_path=row.trans_path,
            rtype=row.rtype,
            vo=row.vo,
            queue_id=row.queue_id,
            throttled=row.throttled != "N",
        )
        for row in GlobalShare.objects.in_order()
    ]


def work_queues() -> WorkQueues:
    return WorkQueues(queue_rows())


def share_tree() -> ShareTree:
    return ShareTree(share_rows())
