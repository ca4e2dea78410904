"""The mapping of tasks to work queues: table 9.1 of the facts about brokerage, partitions, and what is explained."""

from __future__ import annotations

import random

import pytest

from brokerage_app.policy.attributes import TaskAttributes
from brokerage_app.policy.workqueues import QueueRow, Tried, WorkQueues


def row(number: int, name: str, order: int | None = None, criteria: str | None = None, variables: str = "", **more):
    values = {"type": "managed", "vo": "atlas", **more}
    return QueueRow(number, name, order=order, criteria=criteria, variables=variables, **values)


ROWS = (
    row(1, "group", 10, "workingGroup LIKE :p1", "p1:GP_%"),
    row(2, "mcore", 15, "coreCount > 1 AND processingType = :p1", "p1:reco"),
    row(3, "evgensimul", 20, "processingType IN (:p1,:p2)", "p1:evgen,p2:simul"),
    row(4, "old", 1, "processingType = :p1", "p1:evgen", status="inactive"),
    row(5, "rest", 99),
)
QUEUES = WorkQueues(ROWS)
# Partition P at 30 with sub queues of any order numbers, between early and late.
NESTED = WorkQueues(
    [
        row(1, "late", 40),
        row(2, "P", 30, "processingType = :p", "p:never", partition_id=-1),
        row(3, "sub b", 2, partition_id=2, criteria="campaign = :c", variables="c:b"),
        row(4, "sub a", 1, partition_id=2, criteria="campaign = :c", variables="c:a"),
        row(5, "sub off", 0, partition_id=2, status="inactive"),
        row(6, "early", 3, criteria="coreCount = 1"),
        row(7, "orphan", 4, partition_id=77),
        row(8, "last", None),
    ]
)


def task(processing: str | None = None, group: str | None = None, cores: int | None = 1, **more) -> TaskAttributes:
    values = {"vo": "atlas", "prod_source_label": "managed", **more}
    return TaskAttributes(processing_type=processing, working_group=group, core_count=cores, **values)


@pytest.mark.parametrize(
    ("asked", "queue"),
    [
        (task("simul", "GP_Higgs"), "group"),
        (task("simul"), "evgensimul"),
        (task("reco", "AP_X", 8), "mcore"),
        (task("reco", "gp_top"), "group"),
        (task("evgen", "XGP_Top"), "evgensimul"),
        (task("pile"), "rest"),
    ],
    ids=["W1", "W2", "W3", "W4", "W5", "W6"],
)
def test_the_first_queue_in_order_whose_criteria_are_met_gets_the_task(asked, queue):
    for seed in range(5):
        rows = random.Random(seed).sample(ROWS, len(ROWS))
        found = WorkQueues(rows).choose(asked)
        assert (found.queue.name, found.error) == (queue, "")


def test_an_unknown_vo_or_label_is_said():
    assert QUEUES.choose(task("evgen", vo="cms")).error == "queues for vo=cms are undefined"
    assert QUEUES.choose(task("evgen", prod_source_label="user")).error == (
        "queues for type=user are undefined in vo=atlas"
    )
    assert QUEUES.choose(task("evgen", vo="cms")).queue is None


def test_a_name_comes_before_all_criteria_and_one_that_is_not_there_is_passed_over():
    assert QUEUES.choose(task("evgen"), "rest").queue.name == "rest"
    assert QUEUES.choose(task("evgen"), "nowhere").queue.name == "evgensimul"
    assert QUEUES.choose(task("evgen"), "old").queue.name == "evgensimul"


def test_without_a_match_the_error_lists_attributes_and_criteria_that_cannot_be_read():
    queues = WorkQueues([ROWS[0], row(9, "odd", 5, "prcessingType = :p1", "p1:x"), row(10, "unbound", 6, "site = :p")])
    asked = task("pile", event_service=0, split_rule="NF=1", campaign="mc23")
    assert queues.choose(asked).error == (
        "no work queue accepts the task: vo=atlas, label=managed, processingType=pile, workingGroup=null, coreCount=1, "
        "eventService=0, splitRule=NF=1, campaign=mc23; criteria that cannot be read: odd, unbound"
    )


@pytest.mark.parametrize(
    ("campaign", "cores", "queue", "partition"),
    [("a", 8, "sub a", "P"), ("b", 8, "sub b", "P"), ("c", 8, "late", None), ("a", 1, "early", None)],
)
def test_sub_queues_are_tried_where_their_partition_stands(campaign, cores, queue, partition):
    found = NESTED.choose(task(campaign=campaign, cores=cores))
    assert (found.queue.name, found.partition and found.partition.name) == (queue, partition)


def test_a_queue_without_an_order_comes_last_and_one_without_its_partition_never():
    _, tried = NESTED.explain(task(campaign="c", cores=8))
    assert [one.name for one in tried] == ["early", "sub a", "sub b", "late"]
    assert [one.name for one in NESTED.in_order("atlas", "managed")] == ["early", "sub a", "sub b", "late", "last"]
    assert WorkQueues([row(1, "last", None), row(2, "first", 500)]).choose(task()).queue.name == "first"


def test_every_queue_tried_is_explained_with_the_part_that_was_false():
    found, tried = QUEUES.explain(task("simul", None))
    assert found.queue.name == "evgensimul"
    assert tried == (
        Tried("group", False, "workingGroup LIKE 'GP_%' is false: workingGroup is null"),
        Tried(
            "mcore",
            False,
            "coreCount > 1 is false: coreCount is 1; processingType = 'reco' is false: processingType is 'simul'",
        ),
        Tried("evgensimul", True, "processingType IN (:p1,:p2) is true"),
    )
    assert QUEUES.explain(task("pile"))[1][-1] == Tried("rest", True, "it accepts every task")
    assert NESTED.explain(task(campaign="b", cores=8))[1][-1] == Tried("sub b", True, "campaign = :c is true", "P")
    assert QUEUES.explain(task("simul"), "rest")[1] == (Tried("rest", True, "the task names it"),)
    passed_over = QUEUES.explain(task("simul"), "nowhere")[1]
    assert passed_over[0] == Tried(
        "nowhere", False, "the task names it, and type=managed of vo=atlas has no such queue"
    )
    assert len(passed_over) == 4


def test_what_is_explained_is_what_is_chosen():
    for asked in (task("simul", "GP_Higgs"), task("reco", None, 8), task(None, None, None), task("x", vo="cms")):
        found, tried = QUEUES.explain(asked)
        assert found == QUEUES.choose(asked)
        assert [one.name for one in tried if one.matched] == ([found.queue.name] if found.queue else [])


def test_resource_queues_are_found_by_id_and_by_vo_and_label():
    queues = WorkQueues(
        [
            row(1, "es", 5, function="Resource"),
            row(2, "plain", 4),
            row(3, "es user", 3, function="Resource", type="user"),
            row(4, "off", 2, function="Resource", status="inactive"),
            row(5, "other", 1, function="Resource", vo="cms"),
        ]
    )
    assert (queues.resource(1).name, queues.resource(2), queues.resource(4), queues.resource(None)) == (
        "es",
        None,
        None,
        None,
    )
    assert [q.name for q in queues.resources("atlas")] == ["es user", "es"]
    assert [q.name for q in queues.resources("atlas", "managed")] == ["es"]
    assert [q.name for q in queues.resources("atlas", "any")] == ["es user", "es"]
