"""Every lock and every comparison of a fence in the code has a test that fails without it."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from tests.lock_places import places, places_in
from tests.test_passing_over import PASSED_OVER
from tests.test_waiting import WAITING

_LOCKS, _WAITING, _OVER = "tasks_app.lifecycle.test_locks", "test_waiting", "test_passing_over"
_PASSED = f"{_LOCKS}:test_what_another_process_has_is_passed_over_and_comes_later"
_LEASE = f"{_LOCKS}:test_a_pass_whose_lease_is_gone_neither_renews_nor_records"
_MOVES = f"{_LOCKS}:test_moves_wait_for_who_holds_the_task_and_decide_on_what_he_wrote"
_GONE = f"{_LOCKS}:test_a_holder_whose_claim_is_gone_can_move_nothing"
_HOLDS = f"{_LOCKS}:test_still_holds_is_true_of_the_claim_that_is_on_and_keeps_it"
_TRANSFERS = "tasks_app.transfers.test_transfer_locks"
_HELD_BY_SYSTEMS = "flow.test_production_systems:test_rows_that_a_production_system_holds_delay_no_others"
_PRODSYS = "flow.test_production_systems:test_rows_that_another_holds_are_passed_over"
_ENDED = f"{_LOCKS}:test_a_task_that_is_ended_at_this_moment_is_not_ended_again"
_RANGES = "events_app.lifecycle.test_range_locks"
_JOBSETS = "events_app.ends.test_jobset_locks"

TESTED: dict[str, str] = {
    "events_app/dispatch/ownership.py:SHOWN": "events_app.api.test_handing_out:test_other_peoples_jobs_are_refused",
    "events_app/ends/jobset_facts.py:hold": f"{_JOBSETS}:test_the_end_of_a_consumer_waits_for_that_of_another",
    "events_app/lifecycle/jobset_ranges.py:_END": (
        f"{_JOBSETS}:test_a_range_that_is_processed_at_this_moment_is_thrown_away_with_its_jobset"
    ),
    "events_app/lifecycle/range_ends.py:_END": (
        f"{_RANGES}:test_a_range_that_is_finished_at_this_moment_is_done_when_its_consumer_ends"
    ),
    "events_app/lifecycle/range_ends.py:_FROM_JUMBO": (
        f"{_RANGES}:test_a_range_of_a_jumbo_job_is_done_once_when_two_consumers_end"
    ),
    "events_app/lifecycle/range_reinsertion.py:_SETTLE": (
        f"{_RANGES}:test_a_range_that_is_finished_at_this_moment_is_thrown_away_when_its_file_is_tried_again"
    ),
    "events_app/lifecycle/range_handout.py:_JOB": f"{_RANGES}:test_a_job_that_ends_at_this_moment_gets_no_range",
    "events_app/lifecycle/range_handout.py:_WAITING": f"{_RANGES}:test_two_consumers_that_ask_at_once_share_no_range",
    "events_app/lifecycle/range_reports.py:_REPORTERS": f"{_RANGES}:test_a_job_that_ends_at_this_moment_reports_nothing",
    "events_app/lifecycle/range_reports.py:_HOLD": f"{_RANGES}:test_a_range_that_is_taken_back_at_this_moment_is_not_reported",
    "events_app/zips/deleting.py:_ENDED": (
        "events_app.zips.test_old_zips:test_what_a_task_keeps_stays_while_it_is_tried_again"
    ),
    "events_app/zips/deleting.py:_UNNEEDED": (
        "events_app.zips.test_old_zips:test_a_zip_file_that_another_process_deletes_is_left_to_it"
    ),
    "brokerage_app/verdicts/records.py:_FOLD": f"{_PASSED}[decisions]",
    "jedisite/agents/pass_queue.py:PassQueue.dequeue": f"{_LOCKS}:test_a_cluster_passes_over_a_pass_that_another_takes",
    "jedisite/agents/passes.py:_release 2": _LEASE,
    "jedisite/agents/passes.py:count_anew": (
        f"{_LOCKS}:test_a_site_that_starts_passes_over_agents_that_another_process_has"
    ),
    "jedisite/agents/passes.py:renew_lease": _LEASE,
    "jedisite/agents/passes.py:take_due": f"{_LOCKS}:test_a_ticker_passes_over_agents_that_another_takes",
    "jedisite/database/partitions.py:_make": (
        f"{_WAITING}:test_a_row_that_lands_in_the_default_partition_at_this_moment_moves_to_the_new_one"
    ),
    "tasks_app/upkeep/expiring.py:_end 2": f"{_PASSED}[silent]",
    "tasks_app/failures/booking.py:_book": f"{_PASSED}[ends]",
    "tasks_app/lifecycle/job_moves.py:move_free_jobs": f"{_PASSED}[queued]",
    "tasks_app/outcomes/final_reports.py:_book_some": f"{_PASSED}[reports]",
    "tasks_app/retries/task_changes.py:_change 2": f"{_PASSED}[changes]",
    "tasks_app/commands/obeying.py:obey_next": f"{_PASSED}[commands]",
    "tasks_app/commands/obeying.py:obey_next 2": (
        f"{_LOCKS}:test_a_command_is_obeyed_in_the_state_that_the_task_has_by_then"
    ),
    "tasks_app/generation/merge_turns.py:_say": f"{_LOCKS}:test_the_sentence_on_a_task_is_left_alone_while_somebody_has_it",
    "tasks_app/messaging/publishing.py:place": f"{_LOCKS}:test_one_publisher_gives_places_at_a_time",
    "tasks_app/alerts/alert_ways.py:claim_alerts": f"{_PASSED}[alerts]",
    "tasks_app/alerts/due_alerts.py:make": "tasks_app.alerts.test_alerts:test_two_agents_at_once_tell_a_problem_once",
    "tasks_app/messaging/sending.py:claim_mails": f"{_PASSED}[mails]",
    "tasks_app/outcomes/task_progress.py:book_progress": (f"{_LOCKS}:test_progress_is_booked_where_the_row_is_free"),
    "tasks_app/outcomes/task_progress.py:_FORECAST": f"{_LOCKS}:test_a_forecast_is_booked_where_the_row_is_free",
    "tasks_app/outcomes/finishing.py:finish": _ENDED,
    "tasks_app/outcomes/finishing.py:finish 2": _ENDED,
    "tasks_app/upkeep/archiving.py:_MOVE": f"{_PASSED}[old_jobs]",
    "tasks_app/upkeep/expired_outputs.py:delete_expired": f"{_PASSED}[expired]",
    "tasks_app/upkeep/old_rows.py:delete_oldest": (f"{_LOCKS}:test_old_messages_go_where_nobody_has_them"),
    "tasks_app/upkeep/paused_jobs.py:end_unready": f"{_PASSED}[of_paused]",
    "tasks_app/scouts/measuring_again.py:ask_again": (
        f"{_LOCKS}:test_a_new_measurement_is_asked_for_where_the_row_is_free"
    ),
    "tasks_app/lifecycle/claims.py:free_stale": f"{_PASSED}[left_claims]",
    "tasks_app/api/v2/idempotency.py:_clean": f"{_PASSED}[keys]",
    "tasks_app/lifecycle/claims.py:_give_back": "tasks_app.lifecycle.test_troubles:"
    "test_what_does_not_fit_into_the_time_of_a_pass_is_given_back_in_its_place_unless_another_has_it",
    "tasks_app/lifecycle/claims.py:_renew": (
        f"{_LOCKS}:test_a_claim_of_a_stopped_agent_is_free_after_a_minute_unless_it_is_renewed"
    ),
    "tasks_app/lifecycle/claims.py:claim_tasks": f"{_LOCKS}:test_a_claim_passes_over_tasks_that_another_transaction_holds",
    "tasks_app/lifecycle/claims.py:release_task": f"{_LOCKS}:test_a_release_frees_only_the_claim_that_it_is_of",
    "tasks_app/lifecycle/claims.py:still_holds": _HOLDS,
    "tasks_app/lifecycle/claims.py:still_holds 2": _HOLDS,
    "tasks_app/inputs/file_rows.py:hold": f"{_LOCKS}:test_hold_renews_the_claim_that_is_on_and_no_other",
    "tasks_app/generation/mergejobs.py:_lock_producers": (
        f"{_LOCKS}:test_outputs_of_a_job_that_is_ended_at_this_moment_are_not_merged"
    ),
    "tasks_app/generation/mergejobs.py:make_merge_jobs": (
        f"{_LOCKS}:test_merge_jobs_are_not_made_while_somebody_else_has_the_task"
    ),
    "tasks_app/dispatch/harvester_commands.py:_ACQUIRE": f"{_PASSED}[orders]",
    "tasks_app/messaging/effects.py:_files_staged": (
        f"{_LOCKS}:test_datasets_are_locked_before_their_files_and_in_order"
    ),
    "tasks_app/messaging/effects.py:_job_command": (
        f"{_LOCKS}:test_a_job_that_ends_at_this_moment_is_not_killed_by_a_message"
    ),
    "tasks_app/messaging/effects.py:_look_at": (f"{_LOCKS}:test_datasets_that_are_to_be_looked_at_are_locked_in_order"),
    "tasks_app/messaging/inbox.py:process_next": f"{_PASSED}[inbox_rows]",
    "tasks_app/messaging/production_systems.py:_NEXT_TASK": _PRODSYS,
    "tasks_app/messaging/production_systems.py:_NEXT_COMMAND": _PRODSYS,
    "tasks_app/messaging/production_systems.py:_NO_ACCOUNT": _HELD_BY_SYSTEMS,
    "tasks_app/messaging/production_systems.py:_NO_ACCOUNT 2": _HELD_BY_SYSTEMS,
    "tasks_app/messaging/states_back.py:_COMMANDS": _HELD_BY_SYSTEMS,
    "tasks_app/messaging/states_back.py:_WRITE": _PRODSYS,
    "tasks_app/submission/command_queue.py:give_command": _MOVES,
    "tasks_app/lifecycle/task_moves.py:move_task": _MOVES,
    "tasks_app/lifecycle/task_moves.py:move_task 2": f"{_GONE}[move_task]",
    "tasks_app/lifecycle/task_moves.py:note_task": _MOVES,
    "tasks_app/lifecycle/task_moves.py:note_task 2": f"{_GONE}[note_task]",
    "tasks_app/lifecycle/nucleus_waits.py:begin_look": (
        f"{_LOCKS}:test_a_look_for_a_nucleus_sets_the_next_one_of_the_claim_that_it_is_of"
    ),
    "tasks_app/dispatch/reports.py:_BY_SECRET": (
        "tasks_app.dispatch.test_report:test_a_report_with_a_wrong_proof_is_refused_and_changes_nothing"
    ),
    "tasks_app/counts/sampling.py:forget": f"{_PASSED}[samples]",
    "tasks_app/submission/sandbox_uploads.py:_write_row": (
        f"{_WAITING}:test_sandboxes_of_one_owner_are_stored_one_after_the_other"
    ),
    "tasks_app/submission/sandboxes.py:used": (
        f"{_WAITING}:test_a_sandbox_that_is_removed_at_this_moment_is_noted_for_no_task"
    ),
    "tasks_app/submission/sandboxes.py:used 2": (
        f"{_OVER}:test_tasks_that_share_a_sandbox_do_not_wait_for_one_another_to_date_it"
    ),
    "tasks_app/lifecycle/serials.py:_keep_to_this_transaction": f"{_WAITING}:test_names_of_files_are_taken_once_at_a_time",
    "tasks_app/inputs/registering.py:_check_names": f"{_WAITING}:test_files_of_one_scope_are_registered_one_after_the_other",
    "tasks_app/transfers/claiming.py:_LOCK": f"{_TRANSFERS}:test_one_claims_at_a_time",
    "tasks_app/transfers/claiming.py:_CLAIM": f"{_TRANSFERS}:test_a_request_that_another_has_is_passed_over",
    "tasks_app/transfers/claiming.py:_HOLD": f"{_TRANSFERS}:test_a_request_that_is_begun_and_that_another_takes_is_passed_over",
    "tasks_app/transfers/claiming.py:_begin_rules": f"{_TRANSFERS}:test_a_rule_is_begun_when_who_cancels_it_has_done_so",
    "tasks_app/transfers/other_sources.py:_CLOSED": f"{_TRANSFERS}:test_a_request_that_another_has_keeps_its_source",
    "tasks_app/transfers/turn_books.py:_LOCK_RULES": f"{_TRANSFERS}:test_results_wait_for_who_cancels_and_rules_come_first",
    "tasks_app/transfers/turn_books.py:_ours": f"{_TRANSFERS}:test_a_request_that_has_become_somebody_elses_is_not_booked",
    "tasks_app/transfers/requesting.py:cancel": f"{_TRANSFERS}:test_rules_are_cancelled_in_order",
    "tasks_app/transfers/settling.py:ended": f"{_TRANSFERS}:test_an_end_on_which_another_acts_is_passed_over",
    "tasks_app/submission/submitting.py:_existing": f"{_WAITING}:test_a_name_is_submitted_once_at_a_time",
}
"""The others: the cases of `test_waiting` and `test_passing_over` are called after their places."""


SOURCE = '''
"""A docstring may say FOR UPDATE."""
_A: str = f"SELECT 1 FROM t WHERE id = {KEY} FOR NO KEY UPDATE OF t SKIP LOCKED"
_B = "UPDATE t SET fence = fence + 1 WHERE t.id = c.id AND t.fence = c.fence"
class Door:
    def open(self, cursor, fence):
        cursor.execute("SELECT pg_advisory_xact_lock(1); LOCK TABLE t")
        if fence is None or self.fence != fence:
            return rows.select_for_update(of=("self",)).get()
def fenced(task):
    move(task, fence=task.fence)
    if task.fence is not None:
        return f"for update of what waits {task.fence}"
'''


def test_locks_and_fences_are_found_in_all_their_forms_and_nothing_else_is() -> None:
    assert places_in(SOURCE) == ["_A", "_B", *["Door.open"] * 4]


def test_every_lock_and_fence_has_its_test() -> None:
    tables = (TESTED, WAITING, PASSED_OVER)
    named = [place for table in tables for place in table]
    assert len(named) == len(set(named)), "one place has two entries"
    assert places() - set(named) == set(), (
        "give each a case in test_waiting or test_passing_over, or name its test above"
    )
    assert set(named) - places() == set(), "these are no locks any more"


@pytest.mark.parametrize("test", sorted(set(TESTED.values())))
def test_the_tests_that_are_named_are_there(test: str) -> None:
    module, _, name = test.partition(":")
    name, _, case = name.removesuffix("]").partition("[")
    found = getattr(importlib.import_module(f"tests.{module}"), name)
    if case:
        assert case in {name for mark in found.pytestmark if mark.name == "parametrize" for name in _cases(mark)}


def _cases(mark: Any) -> list[str]:
    values, ids = list(mark.args[1]), mark.kwargs.get("ids")
    return [ids(value) for value in values] if callable(ids) else list(ids or map(str, values))
