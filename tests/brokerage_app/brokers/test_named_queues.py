"""Tasks of production that name their queues and get no nucleus: the headline is true, and its advice, followed, brings jobs."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import pytest

from brokerage_app.advice import whatif
from brokerage_app.advice.remedies import helping
from brokerage_app.advice.task_remedies import Remedy
from brokerage_app.advice.whatif import Conditions
from brokerage_app.brokers import choosing, production_job, production_task
from brokerage_app.cases.gathering import NO_WORK, Gathering
from brokerage_app.policy.configuration import DEFAULTS, Configuration
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.snapshot import Grid
from brokerage_app.vocabulary.verdict import Verdict
from tests.brokerage_app.brokers.test_task_broker import ASKS, GROUP, OUTPUTS, ROOM, grid_of

GATHERING = Gathering(OUTPUTS, group=GROUP)
START = "All 2 nuclei were skipped: none of their queues takes the jobs. "
A_IS_OFF = f"{START[:-2]} (the nearest is A_Q: the site's status is offline). "
OFF: dict[str, Any] = {"status": "offline"}


def world(**queues: dict[str, Any]) -> Grid:
    """Two nuclei with a queue each, and FAR_Q of neither; `queues`: what is different at A, B or FAR."""
    grid = grid_of("A", "B")
    sites = {**grid.sites, "FAR_Q": SiteView("FAR_Q", site="FAR", outputs=("FAR_DATADISK",))}
    return replace(
        grid,
        sites={
            name: replace(one, **{**ROOM, "inputs": one.outputs, **queues.get(one.site, {})})
            for name, one in sites.items()
        },
    )


def takers(needs: TaskNeeds, grid: Grid, configuration: Configuration) -> Verdict:
    return choosing.takers(needs, grid, configuration, GATHERING, draw=0.0, work=NO_WORK)


def decide(needs: TaskNeeds, grid: Grid) -> production_task.Decision:
    return production_task.decide(needs, grid, DEFAULTS, GATHERING, draw=0.0, work=NO_WORK)


def follow(needs: TaskNeeds, grid: Grid, advice: Remedy) -> list[str]:
    """The queues that get jobs once a nucleus was chosen under an advice."""
    then = Conditions(needs, grid, DEFAULTS).under([whatif.parse(line) for line in advice.lines])
    drawn = decide(then.needs, then.grid).drawn
    assert drawn is not None, advice
    found = production_job.broker(replace(then.needs, nucleus=drawn.nucleus), then.grid)
    return [choice.site for choice in found.chosen]


SHORT: dict[str, Any] = {"max_walltime_s": 3600}
LONG: dict[str, Any] = {"cpu_hs06s": 1e6}


def bound(how: str, *queues: str) -> dict[str, Any]:
    found: dict[str, dict[str, Any]] = {
        "site": {"preassigned_site": queues[0]},
        "sites": {"listed_sites": queues},
        "includedSite": {"included_sites": queues},
    }
    return found[how]


@pytest.mark.parametrize("how", ["site", "sites", "includedSite"])
@pytest.mark.parametrize(
    ("needs", "queues", "named", "code", "headline", "advice"),
    [
        # The queue is one of a nucleus: that of the other would give a nucleus, and no jobs.
        (
            {},
            {"A": OFF, "B": OFF},
            "A_Q",
            "site_offline",
            f"{START}A_Q, the only site that the task may use, was skipped: the site's status is offline.",
            ["Have A_Q set online; then A_Q takes its jobs."],
        ),
        (
            LONG,
            {"A": SHORT, "B": {"max_walltime_s": 7200}},
            "A_Q",
            "short_walltime",
            f"{START}A_Q, the only site that the task may use, was skipped: "
            "needs 1000000, the site gives 32400 HS06 s in 3600 s.",
            [
                "Lower the cpuTime of the task to 3 % of what it is, if its jobs need no more; "
                "then A_Q takes its jobs.",
                "Have the time limit (s) of A_Q changed from 3600 to 111112; then A_Q takes its jobs.",
            ],
        ),
        # It is of no nucleus, and both have to take the jobs.
        (
            {"memory_mb": 30_000},
            {"A": {"max_memory_mb": 4000}, "B": {"max_memory_mb": 2000}},
            "FAR_Q",
            "low_memory",
            f"{START[:-2]} (the nearest is A_Q: needs 27000 MB, the site gives 4000 MB). "
            "FAR_Q, the only site that the task may use, was skipped: needs 27000 MB, the site gives 16000 MB.",
            [
                "Ask for 4444 MB of memory at most (ramCount; now 30000); then FAR_Q takes its jobs.",
                "Have the memory of a slot (MB) of FAR_Q changed from 16000 to 27000, and have the memory of a slot (MB) of A_Q "
                "changed from 4000 to 27000; then FAR_Q takes its jobs.",
                "Reassign the task to a site other than FAR_Q, and have the memory of a slot (MB) of A_Q "
                "changed from 4000 to 27000; then A takes its jobs.",
            ],
        ),
        (
            {},
            {"A": OFF, "B": OFF, "FAR": OFF},
            "FAR_Q",
            "site_offline",
            f"{A_IS_OFF}FAR_Q, the only site that the task may use, was skipped: the site's status is offline.",
            [
                "Have FAR_Q set online, and have A_Q set online; then FAR_Q takes its jobs.",
                "Reassign the task to a site other than FAR_Q, and have A_Q set online; then A takes its jobs.",
            ],
        ),
        # It would take the jobs: what is missing is the queue of a nucleus that does.
        (
            {},
            {"A": OFF, "B": OFF},
            "FAR_Q",
            "site_offline",
            f"{START}A_Q, B_Q: the site's status is offline.",
            ["Have A_Q set online; then FAR_Q takes its jobs.", "Have B_Q set online; then FAR_Q takes its jobs."],
        ),
        (
            {},
            {"A": OFF, "B": OFF},
            "NOWHERE_Q",
            "site_unknown",
            f"{A_IS_OFF}NOWHERE_Q does not exist.",
            ["Reassign the task to a site other than NOWHERE_Q, and have A_Q set online; then A takes its jobs."],
        ),
        # Jobs that stay at their nucleus: a queue that is of none is none of theirs.
        (
            {"t1_weight": -1},
            {"A": OFF, "B": OFF},
            "FAR_Q",
            "*",
            f"{A_IS_OFF}The task's own choice excludes all 2 sites: A_Q: *",
            ["Reassign the task to a site other than FAR_Q, and have A_Q set online; then A takes its jobs."],
        ),
        (
            {"t1_weight": -1},
            {"A": OFF, "B": OFF, "FAR": {"outputs": ("A_DATADISK",)}},
            "FAR_Q",
            "site_offline",
            f"{START}A_Q, B_Q: the site's status is offline.",
            ["Have A_Q set online; then FAR_Q takes its jobs."],
        ),
        (
            {"t1_weight": -1},
            {"A": OFF, "B": OFF},
            "A_Q",
            "site_offline",
            f"{START}A_Q, the only site that the task may use, was skipped: the site's status is offline.",
            ["Have A_Q set online; then A_Q takes its jobs."],
        ),
    ],
)
def test_a_task_that_names_a_queue_and_gets_no_nucleus_is_told_of_that_queue(
    how: str, needs: dict[str, Any], queues: dict[str, Any], named: str, code: str, headline: str, advice: list[str]
) -> None:
    wants, grid = replace(ASKS, **needs, **bound(how, named)), world(**queues)
    found = decide(wants, grid)
    assert found.verdict.blocked is not None
    told = helping(Conditions(wants, grid, DEFAULTS), found.verdict.blocked, takers)
    assert fnmatchcase(found.sentence(), headline) and fnmatchcase(found.verdict.code, code)
    assert [one.sentence for one in told] == advice
    for one in told:
        # Of a task that names no queue any more the nucleus is told.
        assert tuple(follow(wants, grid, one)) == one.sites or (
            one.sites == ("A",) and "A_Q" in follow(wants, grid, one)
        )


def test_the_queue_of_a_nucleus_that_a_task_excludes_is_no_help() -> None:
    """A nucleus would be found when that queue took longer jobs, but the task's jobs may not go to it."""
    wants = replace(ASKS, **LONG, excluded_sites=("A_Q", "FAR_Q"))
    grid = world(A=SHORT, B={"max_walltime_s": 1800}, FAR=SHORT)
    found = decide(wants, grid)
    assert found.verdict.blocked is not None
    told = helping(Conditions(wants, grid, DEFAULTS), found.verdict.blocked, takers)
    advice = "Have the time limit (s) of B_Q changed from 1800 to 111112; then B_Q takes its jobs."
    assert advice in [one.sentence for one in told]
    for one in told:
        assert {"A_Q", "FAR_Q"}.isdisjoint(follow(wants, grid, one)), one
        assert follow(wants, grid, one), one


def test_of_several_named_queues_and_of_a_chain_only_those_of_a_nucleus_are_told() -> None:
    grid = world(A=OFF, B=OFF, FAR={"status": "paused"})
    for stays in ({"t1_weight": -1}, {"full_chain": "capable"}):
        found = decide(replace(ASKS, included_sites=("A_Q", "FAR_Q"), **stays), grid)
        assert found.sentence().endswith(
            "A_Q, the only site that the task may use, was skipped: the site's status is offline."
        )
    found = decide(replace(ASKS, included_sites=("A_Q", "FAR_Q")), grid)
    assert "All 2 sites that the task may use were skipped: " in found.sentence()


def test_a_queue_that_a_task_names_does_not_count_in_the_choice_of_a_nucleus() -> None:
    drawn = decide(replace(ASKS, included_sites=("A_Q",)), world(A=OFF)).drawn
    assert drawn is not None and drawn.nucleus == "B"
    wants = replace(ASKS, preassigned_site="A_Q")
    after = takers(wants, world(A=OFF), DEFAULTS)
    assert not after.chosen and after.blocked is not None and after.blocked.code == "site_offline"
