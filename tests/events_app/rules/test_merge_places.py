"""Where merge jobs of events run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from brokerage_app.vocabulary.site_view import SiteView
from events_app.rules.merge_places import merge_queue, takes_merges

NEAR = SiteView("NEAR", cores=1, outputs=("SE",), pilots_3h=3)
AT = SiteView("AT", cores=8, capability="mcore")


def chosen(*near: SiteView, at: SiteView = AT, **lists: Any) -> str:
    return merge_queue(at, near, **{"analysis": False, "excluded": (), "included": (), **lists})


@pytest.mark.parametrize(
    ("changes", "takes"),
    [
        ({}, True),
        ({"cores": 8, "capability": "ucore"}, True),
        ({"cores": 8, "capability": "mcore"}, False),
        ({"max_walltime_s": 86_400}, True),
        ({"max_walltime_s": 86_399}, False),
        ({"job_seed": "es"}, False),
        ({"job_seed": "all"}, True),
        ({"type": "analysis"}, False),
        ({"type": "production"}, True),
        ({"status": "brokeroff"}, False),
        ({"outputs": ()}, False),
        ({"pilots_3h": 0}, False),
        ({"pilots_3h": None}, True),
        ({"jumbo": True}, False),
    ],
)
def test_which_queues_take_merge_jobs_of_others(changes: dict[str, Any], takes: bool) -> None:
    assert takes_merges(replace(NEAR, **changes), analysis=False) is takes


def test_users_merge_where_their_jobs_may_run() -> None:
    assert takes_merges(NEAR, analysis=True)
    assert not takes_merges(replace(NEAR, type="production"), analysis=True)


def test_the_queue_near_that_most_pilots_call_merges_and_of_equals_the_own() -> None:
    more = replace(NEAR, name="MORE", pilots_3h=4)
    assert chosen(NEAR, more) == "MORE"
    assert chosen(NEAR, replace(AT, cores=1, outputs=("SE",), pilots_3h=3)) == "AT"
    assert chosen(replace(NEAR, name="B"), replace(NEAR, name="A")) == "A"


def test_without_a_queue_near_that_may_it_runs_where_the_consumer_did() -> None:
    assert chosen() == chosen(replace(NEAR, job_seed="es")) == "AT"
    assert chosen(NEAR, excluded=("NEAR",)) == chosen(NEAR, included=("OTHER",)) == "AT"
    assert chosen(NEAR, included=("NE*",)) == "NEAR"


@pytest.mark.parametrize("switch", ["localEsMerge", "localEsMergeNC"])
def test_a_queue_may_keep_the_merges_of_its_consumers(switch: str) -> None:
    assert chosen(NEAR, at=replace(AT, switches={switch: ""})) == "AT"
