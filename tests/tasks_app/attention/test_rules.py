"""What needs somebody: each rule on a few facts, at its limits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.urls import resolve
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.attention.added_rules import ADDED
from tasks_app.attention.rules import machinery_rules, site_rules, task_rules
from tasks_app.attention.rules.attention_facts import (
    AgentFact,
    BacklogFact,
    ClosedFact,
    CopyFact,
    GridFact,
    RateFact,
    ShareFact,
    SiteFact,
    StorageFact,
    TaskFact,
    TroubleFact,
)
from tasks_app.attention.rules.findings import KINDS, LONGEST_SENTENCE, MOST_OF_A_KIND, SHOWN_OF_MANY, Found
from tasks_app.failures.rules.black_holes import BlackHole, NodeEnds

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def task(status: str = "running", hours: float = 7, **more: Any) -> TaskFact:
    return TaskFact(1, "user.ada", "ada", status, NOW - hours * HOUR, **more)


def agent(**more: Any) -> AgentFact:
    values = {"paused": False, "late": False, "late_s": 0.0, "errors_in_a_row": 0, "last_error": "", "last_ended": None}
    return AgentFact("feeder", "Finds the files", **{**values, **more})


def closed(old: str, new: str, hours: float = 1, queued: int = 0) -> ClosedFact:
    return ClosedFact("SITE/A 1", old, new, NOW - hours * HOUR if old else None, "grace", "no power", 7, queued)


OFF = ("copy_storage_off", "D is blacklisted for writing", "D is blacklisted for writing", 1234)
CASES: list[tuple[str, list[Found], str]] = [
    (
        "stuck",
        list(task_rules.stuck([task(queued_jobs=3, reason="All 3 sites were skipped.")], NOW)),
        "Task 1 user.ada (running): no new job and no progress for 7 h; 3 jobs wait for a pilot; All 3 sites were skipped.",
    ),
    ("not stuck for long", list(task_rules.stuck([task(hours=5.9)], NOW)), ""),
    (
        "exhausted",
        list(task_rules.asks_a_person([task("exhausted", 0.1, reason="too many failures")], NOW)),
        "Task 1 user.ada is exhausted and has waited for a decision for 6 min; too many failures.",
    ),
    (
        "pending",
        list(task_rules.asks_a_person([task("pending", 13)], NOW)),
        "Task 1 user.ada has made no progress for 13 h.",
    ),
    ("pending for a while", list(task_rules.asks_a_person([task("pending", 11), task("running", 90)], NOW)), ""),
    (
        "staging",
        list(task_rules.data_stalls([task("staging", 30, reason="2 of 9 files have come from tape")], [], NOW)),
        "Task 1 user.ada: its input has been on its way from tape for 1 d; 2 of 9 files have come from tape.",
    ),
    (
        "missing",
        list(task_rules.data_stalls([task(missing_files=1), task("staging", 1)], [], NOW)),
        "Task 1 user.ada: 1 input file is missing.",
    ),
    (
        "copies",
        list(task_rules.data_stalls([task("staging", 30)], [CopyFact(*OFF, frozenset({1, 2, 3, 4}), NOW - HOUR)], NOW)),
        "4 tasks (1, 2, 3 and 1 more) wait for 1234 files, the oldest for 1 h: D is blacklisted for writing.",
    ),
    (
        "a copy of nobody's",
        list(task_rules.data_stalls([], [CopyFact(*OFF[:3], 1, frozenset(), NOW - HOUR)], NOW)),
        "1 file is waited for, the oldest for 1 h: D is blacklisted for writing.",
    ),
    ("new copies", list(task_rules.data_stalls([], [CopyFact(*OFF, frozenset(), NOW - HOUR / 2)], NOW)), ""),
    ("slow copies", list(task_rules.data_stalls([], [CopyFact(*OFF, frozenset({1}), NOW - 11 * HOUR, True)], NOW)), ""),
    (
        "spike",
        list(site_rules.failure_spikes([RateFact("S", 50, 50, 7200, 90, 10)])),
        "At S 50 % of 100 jobs failed in the last hour; usually 10 % (same hour last week); 2 core hours were lost.",
    ),
    ("as bad as last week", list(site_rules.failure_spikes([RateFact("S", 50, 50, 0, 60, 40)])), ""),
    (
        "no week yet",
        list(site_rules.failure_spikes([RateFact("", 50, 50, 0, 0, 0, 180, 20)])),
        "On the whole grid 50 % of 100 jobs failed in the last hour; usually 10 % (previous 24 h).",
    ),
    (
        "no past at all",
        list(site_rules.failure_spikes([RateFact("S", 0, 20, 0)])),
        "At S 100 % of 20 jobs failed in the last hour.",
    ),
    ("few failures", list(site_rules.failure_spikes([RateFact("S", 0, 19, 0), RateFact("T", 0, 0, 0)])), ""),
    (
        "no pilots",
        list(site_rules.no_pilots([SiteFact("S", "online", 12, 0, 0, 3)], NOW)),
        "12 jobs wait at S, and no pilot has called for 3 hours; 3 batch jobs are on their way.",
    ),
    (
        "pilots",
        list(
            site_rules.no_pilots(
                [
                    SiteFact("busy", "online", 12, 1, 0),
                    SiteFact("called", "online", 12, 0, 1),
                    SiteFact("unknown", "online", 12, 0, None),
                    SiteFact("offline", "offline", 12, 0, 0),
                    SiteFact("idle", "online", 0, 0, 0),
                    SiteFact("just sent", "online", 12, 0, None, 0, None, NOW - HOUR / 15),
                ],
                NOW,
            )
        ),
        "",
    ),
    (
        "pilots have stopped",
        list(site_rules.no_pilots([SiteFact("S", "online", 2, 0, 347, 0, None, None, NOW - HOUR / 10)], NOW)),
        "2 jobs wait at S, and no pilot has asked for one since 2026-11-22 11:54:00 UTC, when the oldest came; "
        "no batch job is on its way.",
    ),
    (
        "pilots have stopped before the job came",
        list(
            site_rules.no_pilots(
                [SiteFact("S", "online", 2, 0, 347, 0, None, None, NOW - HOUR / 10, NOW - HOUR / 4)], NOW
            )
        ),
        "2 jobs wait at S, and no pilot has asked for any since 2026-11-22 11:45:00 UTC; no batch job is on its way.",
    ),
    (
        "pilots have stopped hours ago",
        list(
            site_rules.no_pilots(
                [SiteFact("S", "online", 2, 0, 0, 0, None, None, NOW - HOUR / 10, NOW - 4 * HOUR)], NOW
            )
        ),
        "2 jobs wait at S, and no pilot has asked for any since 2026-11-22 08:00:00 UTC; no batch job is on its way.",
    ),
    (
        "no pilot ever",
        list(site_rules.no_pilots([SiteFact("S", "online", 2, 0, None, 0, None, NOW - HOUR / 12)], NOW)),
        "2 jobs wait at S, and no pilot has ever asked for jobs there; no batch job is on its way.",
    ),
    (
        "nothing runs",
        list(site_rules.nothing_runs(GridFact(70, 40, 0, NOW - HOUR / 6, 3, 1), NOW)),
        "No job has run for 10 min, although 70 jobs are queued; 40 jobs wait for a pilot.",
    ),
    (
        "nothing runs of what all waits",
        list(site_rules.nothing_runs(GridFact(70, 70, 0, NOW - HOUR / 6, 3, 1), NOW)),
        "No job has run for 10 min, although 70 jobs are queued; all of them wait for a pilot.",
    ),
    (
        "all is well, is just beginning, or was never looked at",
        [
            one
            for grid in (
                GridFact(70, 40, 1, NOW - HOUR, 3, 1),
                GridFact(0, 0, 0, NOW - HOUR, 3, 1),
                GridFact(70, 0, 0, None, 0, 1),
                GridFact(70, 40, 0, NOW - HOUR / 7, 3, 1),
            )
            for one in site_rules.nothing_runs(grid, NOW)
        ],
        "",
    ),
    (
        "no calls",
        list(site_rules.no_calls(GridFact(70, 40, 0, NOW - HOUR, 0, 1), NOW)),
        "No pilot has asked for a job for more than 1 h; 40 jobs wait.",
    ),
    (
        "pilots call, or have nothing to fetch, or were not counted for long",
        [
            one
            for grid in (
                GridFact(70, 40, 0, NOW - HOUR, 1, 1),
                GridFact(70, 0, 0, NOW - HOUR, 0, 1),
                GridFact(70, 40, 0, None, 0, 1),
                GridFact(70, 40, 0, NOW - HOUR / 2, 0, 1),
                GridFact(70, 40, 2, NOW - HOUR, 0, 1),
            )
            for one in site_rules.no_calls(grid, NOW)
        ],
        "",
    ),
    (
        "closed",
        list(site_rules.closed([closed("online", "offline")], NOW)),
        "SITE/A 1 went from online to offline by grace; no power; 7 open jobs affected.",
    ),
    (
        "closed with queued jobs for long",
        list(site_rules.closed([closed("online", "paused", 240, 3)], NOW)),
        "SITE/A 1 went from online to paused by grace; no power; 7 open jobs affected, "
        "3 of them queued, which pilots cannot get.",
    ),
    (
        "never open, with queued jobs",
        list(site_rules.closed([closed("", "offline", 0, 7)], NOW)),
        "SITE/A 1 is offline; no power; 7 open jobs affected, 7 of them queued, which pilots cannot get.",
    ),
    (
        "closed for long, never open, or open",
        list(
            site_rules.closed(
                [closed("online", "test", 25, 3), closed("", "offline"), closed("online", "standby", 1, 7)], NOW
            )
        ),
        "",
    ),
    (
        "all closed",
        list(site_rules.all_closed({"offline": 13, "paused": 1, "online": 0}, GridFact(144, 9, 0, NOW, 0, 1, 28))),
        "No queue takes jobs: 13 are offline, 1 is paused; 144 jobs are queued; 28 tasks wait for jobs.",
    ),
    (
        "some open, or no queue",
        [
            one
            for queues in ({"offline": 13, "standby": 1}, {})
            for one in site_rules.all_closed(queues, GridFact(144, 9, 0, NOW, 0, 1))
        ],
        "",
    ),
    (
        "nothing runs and tasks wait",
        list(site_rules.nothing_runs(GridFact(0, 0, 0, NOW - HOUR / 6, 3, 1, 28), NOW)),
        "No job has run for 10 min, although 28 tasks wait for jobs.",
    ),
    (
        "full storage",
        list(site_rules.full_storage([StorageFact("SE", "S", "5 GB are usable at SE", tuple("ABCDEF"), NOW)])),
        "5 GB are usable at SE, as of 2026-11-22 12:00 UTC; "
        "jobs whose outputs go there are not sent to A, B, C, D, E and 1 more.",
    ),
    ("no full storage", list(site_rules.full_storage([])), ""),
    (
        "storage that is away",
        list(
            site_rules.away_storage(
                [StorageFact("SE", "S", "The folder of the storage SE is away: /se is empty", (), NOW)]
            )
        ),
        f"The folder of the storage SE is away: /se is empty, seen {NOW:%Y-%m-%d %H:%M} UTC.",
    ),
    (
        "black hole",
        list(site_rules.black_holes([BlackHole(NodeEnds("S", "wn1", 1, 99, 40.0), 0.05)])),
        "99 of 100 jobs failed on wn1, half of them within 40 s; elsewhere at S 5% of the jobs fail.",
    ),
    (
        "starved",
        list(site_rules.starved_shares([ShareFact("User", 30, 40, 100, 500)])),
        "User had 40 % of its target over the last day (40 of 100 HS23); jobs of 500 HS23 wait.",
    ),
    (
        "shares that are well",
        list(
            site_rules.starved_shares(
                [
                    ShareFact("half", 30, 50, 100, 500),
                    ShareFact("no work", 30, 0, 100, 10),
                    ShareFact("tiny", 0.5, 0, 2, 500),
                    ShareFact("over", 30, 200, 100, 500),
                    ShareFact("empty grid", 30, 0, 0, 500),
                ]
            )
        ),
        "",
    ),
    (
        "late",
        list(machinery_rules.late_agents([agent(late=True, late_s=600)])),
        "Agent feeder is overdue by 10 min; Finds the files.",
    ),
    (
        "fails",
        list(machinery_rules.late_agents([agent(errors_in_a_row=3, last_error="Traceback\nValueError: x\n")])),
        "Agent feeder has failed 3 times in a row; ValueError: x.",
    ),
    ("paused", list(machinery_rules.late_agents([agent(late=True, paused=True), agent(errors_in_a_row=2)])), ""),
    (
        "the task was paused",
        list(
            machinery_rules.paused_agents(
                [agent(paused=True, pause="by grace since 2026-11-22 11:50 UTC (“Rucio is down”)", tasks=2), agent()]
            )
        ),
        "Agent feeder is paused by grace since 2026-11-22 11:50 UTC (“Rucio is down”); Finds the files; "
        "2 open tasks are in states that it handles.",
    ),
    (
        "paused by nobody knows whom",
        list(machinery_rules.paused_agents([agent(paused=True)])),
        "Agent feeder is paused; Finds the files.",
    ),
    (
        "trouble",
        list(
            machinery_rules.troubles([TroubleFact("feeder", "task", 7, 3, NOW, "ValueError: x", 7, "user.ada", "ada")])
        ),
        "Task 7 user.ada: the agent feeder has failed 3 times in a row; ValueError: x.",
    ),
    (
        "trouble with a job",
        list(machinery_rules.troubles([TroubleFact("adder", "job", 9, 1, NOW, "KeyError: 'a'")])),
        "Job 9: the agent adder has failed once; KeyError: 'a'.",
    ),
    (
        "full",
        list(machinery_rules.full_queues([BacklogFact("reports", "reports wait", 20, 300, "/agents/")])),
        "20 reports wait, the oldest for 5 min.",
    ),
    (
        "in flow",
        list(
            machinery_rules.full_queues(
                [BacklogFact("a", "a", 19, 900, "/agents/"), BacklogFact("b", "b", 900, 299, "/agents/")]
            )
        ),
        "",
    ),
]


@pytest.mark.parametrize(("found", "said"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_rules(found: list[Found], said: str) -> None:
    assert [one.sentence for one in found] == ([said] if said else [])
    for one in found:
        resolve(one.path.partition("?")[0])
        assert one.kind in KINDS and one.rank >= KINDS[one.kind].base


def test_every_kind_has_a_case() -> None:
    assert {one.kind for _, found, _ in CASES for one in found} == set(KINDS) - set(ADDED), (
        "others have theirs elsewhere"
    )


@given(st.integers(0, 40), st.text(max_size=600))
def test_many_of_a_kind_are_few_sentences(number: int, reason: str) -> None:
    many = [TaskFact(n, "t", "ada", "exhausted", NOW - n * HOUR, reason) for n in range(number)]
    found = list(task_rules.asks_a_person(many, NOW))
    assert len({one.key for one in found}) == len(found)
    assert all(len(one.sentence) <= LONGEST_SENTENCE for one in found)
    if number <= MOST_OF_A_KIND:
        assert len(found) == number
    else:
        assert (
            len(found) == SHOWN_OF_MANY + 1
            and found[-1].sentence == f"{number - SHOWN_OF_MANY} more tasks are exhausted."
        )
        assert found[0].key == str(number - 1), "the oldest first"
