"""What event service has to be tested for at least, and the test of each: worked examples of cutting, hand-outs, reports, ends,
merging, jumbo and fine-grained jobs, and what must hold at any time."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
SLICING, BLOCKS = "tasks_app/splitting/test_slicing.py", "events_app/rules/test_range_blocks.py"
HANDING, REPORTING = "events_app/api/test_handing_out.py", "events_app/api/test_reporting.py"
CONSUMERS, JUMBO = "events_app/ends/test_ends_of_consumers.py", "events_app/ends/test_ends_of_jumbo_jobs.py"
MERGES, RULES = "events_app/ends/test_ends_of_merge_jobs.py", "events_app/rules/test_consumer_ends.py"
FINE, TASKS = "flow/test_cloned_tasks.py", "flow/test_event_service.py"

SHOWN_BY: dict[str, list[tuple[str, str]]] = {
    "records: the quota goes on in the next file; even ones; a first event": [
        (SLICING, "test_records_of_the_worked_examples")
    ],
    "records of short inputs": [
        (SLICING, "test_short_files_give_complete_records_only"),
        ("flow/test_events.py", "test_short_tails_of_inputs_are_left_out"),
    ],
    "a file with no or an unknown number of events stays whole": [
        ("flow/test_events.py", "test_files_whose_events_nobody_knows_stay_whole")
    ],
    "a dataset has a greatest number of records": [
        (
            "tasks_app/inputs/test_feeding.py",
            "test_a_task_with_more_pieces_of_work_than_is_configured_breaks_with_the_way_out",
        )
    ],
    "ranges of two files, over the job and in each file": [
        (BLOCKS, "test_ranges_of_two_files_in_one_job"),
        (TASKS, "test_events_count_over_the_files_of_a_job_or_inside_of_each"),
    ],
    "ranges of a part of a file": [
        (BLOCKS, "test_ranges_of_a_part_of_a_file_count_from_the_beginning_of_the_file"),
        (TASKS, "test_records_of_events_are_ranges_of_their_part_of_the_file"),
    ],
    "a hand-out with and without a surplus, and whom it ends": [
        ("events_app/lifecycle/test_ranges.py", "test_a_consumer_gets_what_is_ready_and_hears_whether_more_is"),
        (HANDING, "test_consumers_without_a_pilot_are_not_needed_once_no_range_is_left"),
    ],
    "nothing for a job that is to be killed, or is not at work": [
        (HANDING, "test_a_job_that_is_not_at_work_gets_none_and_ends_nobody")
    ],
    "hopeless ranges are never handed out": [
        ("events_app/lifecycle/test_ranges.py", "test_a_consumer_gets_what_is_ready_and_hears_whether_more_is")
    ],
    "ids of ranges, words, and what is sent twice": [
        ("events_app/rules/test_range_ids.py", "test_what_is_no_id_is_refused_with_a_sentence"),
        (REPORTING, "test_each_item_is_answered_by_the_first_thing_that_is_wrong_with_it"),
        (REPORTING, "test_a_report_that_is_sent_again_is_right_and_one_that_contradicts_it_is_not"),
    ],
    "a zip file with its ranges": [(REPORTING, "test_a_zip_file_gets_a_row_and_its_ranges_are_finished")],
    "100 001 items": [(REPORTING, "test_what_is_beyond_the_limit_is_ignored")],
    "one consumer does all": [(CONSUMERS, "test_one_consumer_does_all_and_its_output_is_merged")],
    "two consumers": [(CONSUMERS, "test_the_first_of_two_consumers_waits_for_the_second_and_both_are_merged")],
    "failure and release": [
        (CONSUMERS, "test_what_failed_and_what_was_not_reported_is_tried_again_by_another_consumer")
    ],
    "nothing is processed": [
        (CONSUMERS, "test_a_consumer_that_processed_nothing_is_closed_and_another_one_follows"),
        (CONSUMERS, "test_a_consumer_that_processed_nothing_at_its_last_attempt_fails_and_its_file_comes_back"),
    ],
    "a fatal range": [(CONSUMERS, "test_a_fatal_range_fails_the_only_consumer")],
    "a partial result": [
        (CONSUMERS, "test_a_fatal_range_is_left_out_where_a_partial_result_is_accepted"),
        (
            "events_app/api/test_whole_tasks.py",
            "test_what_was_given_up_of_a_file_is_told_and_a_retry_processes_that_alone",
        ),
    ],
    "all ranges fail at their last attempt": [
        (CONSUMERS, "test_ranges_that_fail_at_their_last_attempt_fail_the_jobset")
    ],
    "a range is released at its last attempt": [
        (CONSUMERS, "test_a_range_that_is_released_at_its_last_attempt_is_hopeless"),
        (CONSUMERS, "test_a_range_that_is_released_keeps_its_attempts_where_only_failures_count"),
    ],
    "a consumer beside a jumbo job": [
        (JUMBO, "test_the_end_of_a_consumer_completes_what_jumbo_jobs_have_done_of_its_file"),
        (JUMBO, "test_a_consumer_whose_ranges_jumbo_jobs_have_all_done_is_merged_without_having_begun"),
    ],
    "each verdict on a consumer": [
        (RULES, "test_how_it_goes_on"),
        (RULES, "test_a_consumer_that_was_ended_before_stays_as_it_is"),
        (MERGES, "test_outputs_that_lie_nowhere_are_not_merged_and_the_job_says_why"),
    ],
    "two ends at once": [
        ("events_app/ends/test_jobset_locks.py", "test_two_consumers_that_end_at_once_have_one_merge_job")
    ],
    "two hand-outs at once": [
        ("events_app/lifecycle/test_range_locks.py", "test_two_consumers_that_ask_at_once_share_no_range"),
        ("events_app/dispatch/test_at_once.py", "test_callers_never_share_a_range"),
    ],
    "of a range that was done twice the later job is merged": [
        (MERGES, "test_of_a_range_that_was_done_twice_the_later_job_counts")
    ],
    "a zip file that cannot be read": [
        (MERGES, "test_ranges_of_a_zip_file_that_cannot_be_read_are_corrupted"),
        (TASKS, "test_ranges_whose_output_could_not_be_read_are_made_again_and_others_are_kept"),
    ],
    "fine-grained jobs: a part, all, and nothing": [
        (FINE, "test_events_are_processed_one_by_one_and_what_is_left_is_tried_again"),
        (FINE, "test_a_job_that_has_finished_no_event_does_not_finish_its_file"),
    ],
    "outputs of fine-grained jobs": [
        (
            "events_app/api/test_whole_tasks.py",
            "test_outputs_of_a_fine_grained_task_are_one_file_for_each_input_although_a_pilot_was_killed",
        )
    ],
    "the watch dog of jumbo jobs": [("events_app/rules/test_jumbo_watch.py", "test_the_worked_example")],
    "a dynamic number of events": [
        (BLOCKS, "test_a_job_with_a_dynamic_number_of_events_gets_each_file_once_and_books_all_records")
    ],
    "counters and ranges after random walks": [
        ("events_app/ends/test_walks_of_jobsets.py", "test_books_balance_whatever_happens"),
        ("flow/test_audit.py", "test_each_invariant_that_is_broken_is_found"),
    ],
}


@pytest.mark.parametrize("what", SHOWN_BY)
def test_each_item_has_its_tests(what: str) -> None:
    for path, name in SHOWN_BY[what]:
        tree = ast.parse((TESTS / path).read_text())
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"{path} has no {name}"
