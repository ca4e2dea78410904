"""The longest chain that is left of a workflow, and when it ends."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tasks_app.workflows.rules.definition_files import read_definition
from tasks_app.workflows.rules.forecast import Forecast, Step, forecast
from tasks_app.workflows.rules.implied_graph import Graph
from tasks_app.workflows.rules.package_states import ENDED, PackageStatus
from tests.thorough import cases

_P = PackageStatus
READY = Step(_P.UNSCHEDULED)
CHAINS = """job chains
stage
line
binary A
run a
out a
line
binary B
run b
out b
stage
line
binary C
run c
in a b
out c
stage
line
binary D
run d
in c
"""


def graph_of(text: str = CHAINS) -> Graph:
    return read_definition(text)[1]


def waits(seconds: float | None, status: PackageStatus = _P.UNSCHEDULED, so_far: float = 0.0) -> Step:
    return Step(status, seconds, so_far)


def test_the_longest_chain_is_that_of_the_most_seconds() -> None:
    found = forecast(graph_of(), [waits(10), waits(100), waits(5), waits(5)])
    assert (found.left, found.chain, found.chain_s, found.seconds) == (4, (1, 2, 3), 110, 110)


def test_what_runs_has_a_part_behind_it_and_what_has_ended_counts_no_more() -> None:
    steps = [waits(10, _P.LAUNCHED, 4), waits(100, _P.SUCCESSFUL), waits(5), waits(5)]
    assert forecast(graph_of(), steps).chain_s == 16
    late = [waits(10, _P.LAUNCHED, 400), *steps[1:]]
    assert forecast(graph_of(), late).chain_s == 10, "what is overdue takes no time below nothing"
    ended = [waits(1, _P.SUCCESSFUL)] * 2 + [waits(1, _P.CANCELED)] * 2
    assert forecast(graph_of(), ended) == Forecast()


def test_nothing_is_told_of_the_time_when_nothing_like_it_is_known() -> None:
    found = forecast(graph_of(), [READY] * 4)
    assert (found.chain, found.chain_s, found.seconds) == ((0, 2, 3), None, None)
    assert forecast(graph_of(), [READY, READY, waits(30), READY]).chain_s == 90, "others take as long as those known"


def test_what_has_failed_leaves_the_end_open_and_blocks_what_waits_for_it() -> None:
    steps = [waits(10, _P.FAILED), waits(10), waits(10), waits(10)]
    found = forecast(graph_of(), steps)
    assert (found.failed, found.blocked, found.seconds) == (1, 2, None) and found.chain_s == 30


def test_many_packages_end_at_the_rate_until_now() -> None:
    lines = "".join(f"line\nbinary A\nrun a\nout a{n}\n" for n in range(20))
    steps = [waits(10, _P.SUCCESSFUL)] * 10 + [waits(10)] * 10
    found = forecast(graph_of(f"job many\nstage\n{lines}"), steps, running_for_s=1000)
    assert (found.chain_s, found.rate_s, found.seconds) == (10, 1000, 1000)
    few = [waits(10, _P.SUCCESSFUL)] * 4 + [waits(10)] * 16
    assert forecast(graph_of(f"job many\nstage\n{lines}"), few, running_for_s=1000).rate_s is None


@given(
    st.lists(
        st.builds(
            Step,
            st.sampled_from(list(PackageStatus)),
            st.none() | st.floats(0, 1e6),
            st.floats(0, 1e6),
        ),
        min_size=4,
        max_size=4,
    )
)
@settings(max_examples=cases(60, 600))
def test_the_chain_goes_along_the_graph_over_what_is_left(steps: list[Step]) -> None:
    graph = graph_of()
    found = forecast(graph, steps)
    assert all(steps[at].status not in ENDED for at in found.chain)
    assert all(a in graph.parents[b] for a, b in zip(found.chain, found.chain[1:], strict=False))
    assert bool(found.chain) == bool(found.left)
    assert found.chain_s is None or found.chain_s >= 0
