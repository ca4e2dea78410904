from __future__ import annotations

import pytest

from tasks_app.failures.rules.spreads import Over, Spread

ONE = {"site": Over(1, "S", 50), "node": Over(1, "wn1", 50), "task": Over(3, "7", 20)}


@pytest.mark.parametrize(
    ("failures", "over", "sentence"),
    [
        (50, ONE, "all on one worker node, wn1"),
        (50, {**ONE, "node": Over(4, "wn1", 47)}, "94 % on one worker node, wn1"),
        (50, {**ONE, "node": Over(12, "wn1", 9)}, "all at one site, S (12 nodes there)"),
        (50, {"site": Over(9, "S", 9), "node": Over(1, "", 50), "task": Over(2, "7", 49)}, "98 % in one task, 7"),
        (50, {"site": Over(9, "S", 9), "task": Over(9, "7", 9), "user": Over(2, "ada", 45)}, "90 % of one user, ada"),
        (1000, {"site": Over(9, "S", 9), "version": Over(2, "3.1", 999)}, "99 % of one version of the pilot, 3.1"),
        (
            50,
            {"site": Over(9, "S", 9), "node": Over(20, "n", 3), "task": Over(1, "", 50)},
            "everywhere: 9 sites, 20 worker nodes, 1 task",
        ),
        (50, {"site": Over(2, "S", 30)}, "spread: 2 sites"),
        (1, {"site": Over(1, "S", 1), "node": Over(1, "wn1", 1)}, "once, on wn1"),
        (1, {"site": Over(1, "S", 1), "node": Over(1, "", 1)}, "once, at S"),
        (1, {}, "once"),
        (0, {}, "no failure in this time"),
    ],
)
def test_a_sentence_says_where_most_of_the_failures_are(failures: int, over: dict[str, Over], sentence: str) -> None:
    assert Spread(failures, over).sentence == sentence


def test_what_was_picked_is_no_news() -> None:
    assert Spread(50, ONE).without(("node", "site")).sentence == "spread: 3 tasks"
