"""What the sections of a shift say of the facts of a window."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tasks_app.shifts.rules import shift_facts as facts
from tasks_app.shifts.rules.report_text import HandedOver, Remark, report
from tasks_app.shifts.rules.sections import MOST_LINES, Line, headline, sections, worse

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def a_shift(**changes: Any) -> facts.ShiftFacts:
    return facts.ShiftFacts(NOW - 8 * HOUR, NOW, NOW, **changes)


def lines(name: str, **changes: Any) -> list[Line]:
    return next(list(one.lines) for one in sections(a_shift(**changes)) if one.name == name)


def stopped(number: int, reason: str, status: str = "exhausted", now: str = "") -> facts.StoppedFact:
    at = NOW - timedelta(minutes=number)
    return facts.StoppedFact(number, f"user.ada.{number}", "ada", status, now or status, at, reason)


def test_an_error_is_new_when_it_was_first_seen_in_the_window() -> None:
    old = facts.ErrorFact(1, "pilot:1099", "no space left", 12, 7200, NOW - 9 * HOUR, None, "")
    new = facts.ErrorFact(2, "exe:65", "segfault", 1, 0, NOW - HOUR, None, "T-1", "a site", "all at one site, SITE_A")
    first, second = lines("errors", errors=(new, old))
    assert first.text == "New: exe:65 segfault: 1 failed job"
    assert (first.tone, first.note) == ("bad", "cause: a site, all at one site, SITE_A, T-1")
    assert second.text == "pilot:1099 no space left: 12 failed jobs, 2.0 core hours lost"
    assert (second.tone, second.path) == ("", "/errors/1/?since=2026-03-04T04%3A00&until=2026-03-04T12%3A00")


def test_a_site_is_worse_when_clearly_more_fails_than_the_day_before() -> None:
    worse_now = facts.RateFact("A", 60, 40, 190, 10)
    as_ever = facts.RateFact("B", 60, 40, 120, 80)
    few = facts.RateFact("C", 0, 19, 190, 10)
    no_measure = facts.RateFact("D", 10, 50, 3, 0)
    assert [rate.site for rate in worse([worse_now, as_ever, few, no_measure])] == ["D", "A"]
    said = [line.text for line in lines("sites", rates=(worse_now, no_measure))]
    assert said == [
        "D: 83 % of 60 jobs failed; too few jobs the day before to compare",
        "A: 40 % of 100 jobs failed; 5 % the day before",
    ]


def test_stopped_tasks_are_grouped_by_status_and_cause() -> None:
    tasks = (
        stopped(1, "3 of 40 jobs succeeded at SITE"),
        stopped(2, "2 of 50 jobs succeeded at SITE", now="running"),
        stopped(3, "killed by ada: wrong input", "aborted"),
    )
    group, single = lines("tasks", stopped=tasks)
    assert group.text == "2 tasks of 1 user exhausted: 3 of 40 jobs succeeded at SITE"
    assert (group.note, group.links) == ("1 moved on since", (("1", "/tasks/1/"), ("2", "/tasks/2/")))
    assert (single.text, single.path, single.tone) == (
        "Task 3 of ada aborted: killed by ada: wrong input",
        "/tasks/3/",
        "",
    )


def test_what_was_done_names_the_thing_or_how_often() -> None:
    once = facts.DeedFact("ada", "kill", "Kill", "task", "task", 1, NOW, "17", "wrong\r\ninput")
    often = facts.DeedFact("bob", "retry", "Retry", "task", "task", 12, NOW, "18", "")
    first, second = lines("deeds", deeds=(once, often))
    assert (first.text, first.note) == ("ada: Kill (task 17)", "wrong input")
    assert second.text == "bob: Retry (task, 12 times)"
    assert second.path.startswith("/audit/?actor=bob&action=retry&object_type=task&since=")


def test_what_is_snoozed_is_not_open_and_is_watched_when_it_returns_soon() -> None:
    def item(key: str, **changes: Any) -> facts.ItemFact:
        values = {"acknowledged_by": "", "snoozed_until": None, "ticket": "", **changes}
        return facts.ItemFact(key, "bad", f"{key} is wrong.", "/sites/A/", NOW - 2 * HOUR, **values)

    items = (
        item("one", acknowledged_by="ada"),
        item("two", snoozed_until=NOW + HOUR),
        item("three", snoozed_until=NOW + 48 * HOUR),
    )
    assert [(line.text, line.note) for line in lines("open", items=items)] == [
        ("one is wrong", "open for 2 h, acknowledged by ada")
    ]
    assert [line.text for line in lines("watch", items=items)] == ["Snooze ends at 2026-03-04 13:00 UTC: two is wrong"]
    assert headline(a_shift(items=items)).endswith("1 item needs attention now, 1 acknowledged.")


def test_ends_of_statuses_and_tasks_that_wait_long_are_watched() -> None:
    ending = facts.StatusFact("A", "online", "offline", "ada", "cooling", NOW, NOW + HOUR, "online")
    waiting = facts.WaitingFact(7, "ada", "pending", NOW - 3 * HOUR, "All 3 sites were skipped.")
    said = lines("watch", ending=(ending,), waiting=(waiting,))
    assert (said[0].text, said[0].note) == ("A: offline ends at 2026-03-04 13:00 UTC, then online", "ada: cooling")
    assert said[1].text == "Task 7 of ada has been pending for 3 h: All 3 sites were skipped"
    assert said[1].path == "/tasks/7/why/"


def test_a_section_is_bounded_and_counts_the_rest() -> None:
    moves = tuple(facts.StatusFact(f"Q{n}", "online", "offline", "", "", NOW, None, "") for n in range(30))
    queues = next(one for one in sections(a_shift(moves=moves)) if one.name == "queues")
    assert (len(queues.lines), queues.total, queues.more) == (MOST_LINES, 30, 30 - MOST_LINES)
    assert f"* and {30 - MOST_LINES} more" in report(a_shift(moves=moves), [])


def test_the_report_has_all_sections_and_no_line_of_a_note_passes_for_another() -> None:
    handed = HandedOver("ada", NOW, "bob", NOW + HOUR)
    text = report(a_shift(), [Remark("ada", NOW, "first\n* 12:00 bob: forged")], [handed])
    assert text.splitlines()[:2] == [
        "Shift from 2026-03-04 04:00 to 2026-03-04 12:00 UTC, as of 12:00:00 UTC",
        "No job failed. Nothing needs attention now.",
    ]
    for title in ("OPEN NOW", "TO WATCH", "WHAT FAILED", "TASKS THAT STOPPED", "WHAT WAS DONE", "NOTES", "HAND-OVERS"):
        assert title in text.splitlines()
    assert "    * 12:00 bob: forged" in text.splitlines()
    assert "* 2026-03-04 12:00 ada handed over; acknowledged by bob at 2026-03-04 13:00" in text


def test_hostile_texts_stay_on_their_line() -> None:
    text = report(a_shift(stopped=(stopped(1, "\0bad\nNOTES\n* forged" + "x" * 5000),)), [])
    assert all(len(line) < 400 for line in text.splitlines())
    assert "NOTES" not in text.splitlines()
