"""Where a task is counted, and what is read from the database for it."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from brokerage_app.grid import installed_policy
from brokerage_app.models import GlobalShare, WorkQueue
from brokerage_app.policy.attributes import TaskAttributes
from brokerage_app.policy.placement import NO_SHARE, NoPlaceError, Placement, Wish, check_leaf, explain, place
from brokerage_app.policy.shares import Share, ShareTree
from brokerage_app.policy.workqueues import QueueRow, WorkQueues

TASK = TaskAttributes(vo="lab", prod_source_label="user", processing_type="test")
QUEUES = WorkQueues([QueueRow(7, "rest", "user", "lab", order=9)])
TREE = ShareTree([Share("Users", 90), Share("User Analysis", 90, "Users", processing_type="test"), Share("Other", 1)])


def test_without_queues_and_shares_a_task_keeps_what_it_asks_for():
    nothing = WorkQueues([]), ShareTree([])
    assert place(TASK, Wish(), *nothing) == Placement(None, None)
    assert place(TASK, Wish("any", "Express"), *nothing) == Placement(None, "Express")
    assert explain(TASK, Wish(), *nothing).faults == ()


def test_a_task_gets_the_queue_and_the_leaf_that_take_it():
    assert place(TASK, Wish(), QUEUES, TREE) == Placement(7, "User Analysis")
    assert place(TASK, Wish(share="Other"), QUEUES, TREE) == Placement(7, "Other")


@pytest.mark.parametrize(
    ("task", "wish", "says", "field"),
    [
        (TaskAttributes(vo="cms"), Wish(), "queues for vo=cms are undefined", ""),
        (
            TASK,
            Wish(share="Users"),
            "'Users' has shares below it; the shares for tasks are User Analysis, Other",
            "gshare",
        ),
        (TASK, Wish(share="x"), "'x' is not a global share; the shares for tasks are User Analysis, Other", "gshare"),
    ],
)
def test_a_task_that_belongs_nowhere_is_told_why(task, wish, says, field):
    with pytest.raises(NoPlaceError) as caught:
        place(task, wish, QUEUES, TREE)
    assert (str(caught.value), caught.value.field) == (says, field)
    assert explain(task, wish, QUEUES, TREE).faults


def test_a_task_that_matches_no_share_is_told_so():
    tree = ShareTree([Share("s", 1, processing_type="evgen")])
    with pytest.raises(NoPlaceError, match=NO_SHARE) as caught:
        place(TASK, Wish(), WorkQueues([]), tree)
    said = str(caught.value)
    assert explain(TASK, Wish(), QUEUES, tree).faults == (said,)
    assert f"vo={TASK.vo}, prodSourceLabel={TASK.prod_source_label}, workingGroup=none" in said
    assert "; the shares are s. A production manager can name one of them (gshare); an administrator" in said


def test_no_name_is_a_share_where_none_is_configured():
    with pytest.raises(NoPlaceError, match="'Express' is not a global share: this site has none"):
        check_leaf("Express", ShareTree([]))


def test_a_share_that_is_near_is_named():
    with pytest.raises(
        NoPlaceError, match=r"'Othr' is not a global share \(did you mean Other\?\); the shares for tasks are"
    ):
        check_leaf("Othr", TREE)


@pytest.mark.django_db
def test_queues_and_shares_are_read_as_they_are_stored():
    WorkQueue.objects.create(id=5, name="P", type="user", vo="lab", partition_id=-1, share=10, order=2)
    WorkQueue.objects.create(
        id=6,
        name="sub",
        type="user",
        vo="lab",
        partition_id=5,
        stretchable=1,
        criteria="site = :a",
        variables="a:b",
        status="active",
        function="Resource",
    )
    assert installed_policy.queue_rows() == [
        QueueRow(5, "P", "user", "lab", share=10, order=2, partition_id=-1),
        QueueRow(6, "sub", "user", "lab", None, None, "site = :a", "a:b", 5, True, "active", "Resource"),
    ]
    GlobalShare.objects.create(name="b", value=1)
    top = GlobalShare.objects.create(name="c", value=2, queue_id=9001, throttled="N")
    GlobalShare.objects.create(name="a", value=3, parent=top, rtype="GRID", vo="lab")
    assert installed_policy.share_rows() == [
        Share("c", 2, queue_id=9001, throttled=False),
        Share("a", 3, "c", rtype="GRID", vo="lab"),
        Share("b", 1),
    ]
    assert [leaf.name for leaf in installed_policy.share_tree().leaves] == ["a", "b"]


@pytest.mark.django_db
@pytest.mark.parametrize("wrong", [{"value": -1}, {"throttled": "x"}, {"parent_id": "new"}, {"queue_id": 9}])
def test_the_database_keeps_shares_that_cannot_be_away(wrong):
    GlobalShare.objects.create(name="old", value=1, queue_id=9)
    with pytest.raises(IntegrityError), transaction.atomic():
        GlobalShare.objects.create(**{"name": "new", "value": 1, **wrong})


@pytest.mark.django_db
def test_a_share_with_children_stays():
    top = GlobalShare.objects.create(name="top", value=1)
    GlobalShare.objects.create(name="below", value=1, parent=top)
    with pytest.raises(ProtectedError):
        top.delete()
