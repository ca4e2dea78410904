from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from tasks_app.failures.booking import book_ends
from tasks_app.failures.failing_nodes import find_black_holes
from tasks_app.failures.rules.black_holes import NodeEnds, SiteEnds, black_holes
from tasks_app.models import Job, JobEndDue
from tests.ended_jobs import note_failed

SITE = {"S": SiteEnds(finished=900, failed=100)}


@pytest.mark.parametrize(
    ("node", "is_one"),
    [
        (NodeEnds("S", "n1", 2, 60, 40), True),
        (NodeEnds("S", "n1", 2, 9, 40), False),  # too few
        (NodeEnds("S", "n1", 30, 60, 40), False),  # many finish
        (NodeEnds("S", "n1", 2, 60, 7000), False),  # the failures are as long as elsewhere
        (NodeEnds("S", "n1", 2, 60, 2000), True),  # much shorter than elsewhere
        (NodeEnds("T", "n1", 2, 60, 40), False),  # nothing is known of the site
    ],
)
def test_a_black_hole_fails_most_of_many_jobs_early_while_its_site_works(node: NodeEnds, is_one: bool) -> None:
    found = black_holes([node, NodeEnds("S", "n2", 10, 20, 7200)], SITE)
    assert [hole.ends.node for hole in found] == (["n1"] if is_one else [])


def test_where_all_nodes_fail_or_there_is_only_one_no_node_is_to_blame() -> None:
    node = NodeEnds("S", "n1", 0, 60, 40)
    assert not black_holes([node], {"S": SiteEnds(0, 60)})
    assert not black_holes([node], {"S": SiteEnds(20, 140)})


@pytest.mark.django_db
def test_black_holes_are_found_in_the_books(make_job: Callable[..., Job]) -> None:
    now = timezone.now()
    ended = {"end_time": now, "state_change_time": now, "site": "S"}
    for number in range(40):
        make_job(status="failed", worker_node=f"slot{number}@hole", start_time=now - timedelta(seconds=20), **ended)
    good = [make_job(status="finished", worker_node=f"n{n % 4}", **ended) for n in range(40)]
    note_failed(now - timedelta(hours=1))
    JobEndDue.objects.bulk_create(JobEndDue(id=job.id) for job in good)
    book_ends(1000)
    (hole,) = find_black_holes(now - timedelta(hours=1), now + timedelta(hours=1), "S")
    assert (hole.ends, hole.others_share) == (NodeEnds("S", "hole", 0, 40, 20.0), 0.0)
    assert "40 of 40 jobs failed on hole, half of them within 20 s" in hole.sentence
    assert not find_black_holes(now - timedelta(hours=1), now + timedelta(hours=1), "T")
