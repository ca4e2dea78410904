"""Dividing the jobs of a chunk over the sites that the broker chose."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.splitting.chunk import Chunk, InputFile, Secondary
from tasks_app.splitting.limits import SplitLimits
from tasks_app.splitting.plan import Candidate, Plan, plan
from tasks_app.splitting.splitter import split
from tests.tasks_app.splitting.test_splitter import extra, files, ids, input_files

ONE = SplitLimits(files_per_job=1)


def chunk(number: int, *others: Secondary) -> Chunk:
    return Chunk(1, files(*[1] * number), others)


def slabs(result: Plan) -> list[tuple[str, int]]:
    return [(share.site, len(share.groups)) for share in result.shares]


def used(result: Plan) -> list[int]:
    return [file.file_id for share in result.shares for group in share.groups for file in group.files]


# --- slabs and weights ---


def test_a_single_site_gets_what_the_splitter_makes() -> None:
    result = plan(chunk(60), [Candidate("A", SplitLimits(files_per_job=2))])
    assert slabs(result) == [("A", 30)]
    assert result.by_site()["A"] == split(chunk(60), SplitLimits(files_per_job=2)).groups


def test_the_site_is_chosen_again_after_a_slab() -> None:
    assert slabs(plan(chunk(60), [Candidate("A", ONE), Candidate("B", ONE)])) == [("A", 25), ("B", 25), ("A", 10)]


def test_scouts_change_the_site_after_two_jobs() -> None:
    assert slabs(plan(chunk(5), [Candidate("A", ONE), Candidate("B", ONE)], scouting=True)) == [
        ("A", 2),
        ("B", 2),
        ("A", 1),
    ]


def test_a_weight_falls_with_the_jobs_that_were_added_to_those_queued() -> None:
    # 3 × 1/26 is less than 1; 4 × 100/125 is more.
    assert slabs(plan(chunk(50), [Candidate("A", ONE, 3.0), Candidate("B", ONE)])) == [("A", 25), ("B", 25)]
    assert slabs(plan(chunk(50), [Candidate("A", ONE, 4.0, queued=99), Candidate("B", ONE)])) == [("A", 25), ("A", 25)]


@pytest.mark.parametrize(("draw", "site"), [(0.0, "A"), (0.24, "A"), (0.26, "B"), (0.999, "B")])
def test_a_random_number_chooses_by_weight(draw: float, site: str) -> None:
    assert slabs(plan(chunk(5), [Candidate("A", ONE, 1.0), Candidate("B", ONE, 3.0)], [draw])) == [(site, 5)]


def test_sites_that_nothing_is_known_of_get_one_slab_first() -> None:
    sites = [Candidate("A", ONE, 9.0), Candidate("B", ONE, 0.0), Candidate("C", ONE, 0.0)]
    assert slabs(plan(chunk(100), sites)) == [("B", 25), ("C", 25), ("A", 25), ("A", 25)]


def test_when_nothing_is_known_of_any_site_the_shortest_queue_comes_next() -> None:
    sites = [Candidate("A", ONE, 0.0, queued=5), Candidate("B", ONE, 0.0)]
    assert slabs(plan(chunk(100), sites)) == [("A", 25), ("B", 25), ("B", 25), ("A", 25)]


def test_a_full_site_gets_no_more() -> None:
    result = plan(chunk(50), [Candidate("A", ONE, 9.0, room=30), Candidate("B", ONE, room=5)])
    assert ({site: len(groups) for site, groups in result.by_site().items()}, len(result.rest)) == (
        {"A": 30, "B": 5},
        15,
    )


def test_no_more_jobs_are_made_than_are_asked_for() -> None:
    result = plan(chunk(50), [Candidate("A", ONE), Candidate("B", ONE)], most_groups=30)
    assert (slabs(result), len(result.rest)) == ([("A", 25), ("B", 5)], 20)


def test_without_a_site_everything_is_left() -> None:
    assert len(plan(chunk(5), []).rest) == 5


def test_each_site_has_limits_of_its_own() -> None:
    result = plan(chunk(6), [Candidate("A", ONE, 2.0, room=2), Candidate("B", SplitLimits(files_per_job=2))])
    assert [len(group.files) for share in result.shares for group in share.groups] == [1, 1, 2, 2]


# --- files that are not everywhere ---


def test_a_site_gets_jobs_that_begin_with_a_file_it_has() -> None:
    sites = [Candidate("A", ONE, 9.0, files=frozenset({0, 1, 5})), Candidate("B", ONE, files=frozenset({2, 3, 4}))]
    # A job whose last file is elsewhere ends the slab; a file that nobody has stops the work.
    result = plan(Chunk(1, files(*[1] * 7)), sites)
    assert {site: [file.file_id for g in groups for file in g.files] for site, groups in result.by_site().items()} == {
        "A": [0, 1, 2],
        "B": [3, 4, 5],
    }
    assert ids(result.rest) == [6]


# --- portions ---


def test_a_site_that_takes_portions_gets_whole_ones() -> None:
    sites = [Candidate("P", ONE, 9.0, portion=4), Candidate("B", ONE)]
    result = plan(chunk(10), sites)
    assert (slabs(result), result.no_portion) == ([("P", 4), ("P", 4), ("B", 2)], ("P",))


def test_what_is_less_than_a_portion_is_left_when_nobody_else_takes_it() -> None:
    result = plan(chunk(10), [Candidate("P", ONE, portion=4)])
    assert (slabs(result), ids(result.rest), result.no_portion) == ([("P", 4), ("P", 4)], [8, 9], ("P",))


def test_secondary_files_of_a_portion_that_was_given_back_are_used_again() -> None:
    sites = [Candidate("P", ONE, 9.0, portion=4), Candidate("B", ONE)]
    result = plan(chunk(6, Secondary(2, extra(6))), sites)
    taken = [ids(group.secondaries[0]) for share in result.shares for group in share.groups]
    assert taken == [[100], [101], [102], [103], [104], [105]]


def test_a_portion_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="portions of 0"):
        plan(chunk(3), [Candidate("P", ONE, portion=0)])


# --- jobs that are too short, secondaries that run dry ---


def test_a_site_for_which_jobs_are_too_short_is_passed_over() -> None:
    short = SplitLimits(max_files=2, dynamic_events=True, walltime_s_per_event=1, min_walltime_s=1000)
    fits = SplitLimits(max_files=2, walltime_s_per_event=1)
    result = plan(Chunk(1, files(1, 1, 1, events=100)), [Candidate("A", short, 9.0), Candidate("B", fits)])
    assert (slabs(result), result.too_short, list(result.rest)) == ([("B", 2)], ("A",), [])


def test_a_site_that_is_passed_over_keeps_what_it_has() -> None:
    limits = SplitLimits(max_files=2, dynamic_events=True, walltime_s_per_event=1, min_walltime_s=150)
    result = plan(Chunk(1, files(1, 1, 1, events=100)), [Candidate("A", limits)])
    assert (slabs(result), result.too_short, ids(result.rest)) == ([("A", 1)], ("A",), [2])


def test_a_secondary_that_runs_dry_ends_the_work() -> None:
    result = plan(chunk(9, Secondary(42, extra(3))), [Candidate("A", ONE), Candidate("B", ONE)], scouting=True)
    assert (slabs(result), result.short_of, len(result.rest)) == ([("A", 2), ("B", 1)], 42, 6)


# --- properties ---

candidates = st.lists(
    st.builds(
        Candidate,
        name=st.sampled_from("ABCDE"),
        limits=st.builds(SplitLimits, files_per_job=st.none() | st.integers(1, 4), max_files=st.integers(1, 6)),
        weight=st.sampled_from([0.0, 0.5, 1.0, 7.0]),
        queued=st.integers(0, 50),
        room=st.none() | st.integers(0, 12),
        portion=st.none() | st.integers(1, 6),
        files=st.none() | st.frozensets(st.integers(0, 59), max_size=60),
    ),
    max_size=4,
    unique_by=lambda candidate: candidate.name,
)


@given(
    master=input_files,
    sites=candidates,
    draws=st.lists(st.floats(0, 1, exclude_max=True), max_size=20),
    most=st.none() | st.integers(0, 30),
    scouting=st.booleans(),
    more=st.booleans(),
)
def test_no_file_is_lost_and_no_site_gets_more_than_it_takes(
    master: list[InputFile],
    sites: list[Candidate],
    draws: Sequence[float],
    most: int | None,
    scouting: bool,
    more: bool,
) -> None:
    result = plan(Chunk(1, master), sites, draws, scouting=scouting, more_to_come=more, most_groups=most)
    assert [*used(result), *ids(result.rest)] == ids(master)
    made = result.by_site()
    assert most is None or sum(map(len, made.values())) <= most
    for site in sites:
        jobs = len(made.get(site.name, ()))
        assert site.room is None or jobs <= site.room
        assert site.portion is None or jobs % site.portion == 0
    assert sum(result.ends.values()) == sum(map(len, made.values()))
