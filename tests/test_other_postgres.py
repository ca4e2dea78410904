"""What runs on the embedded PostgreSQL 18 runs on that of the distribution (Debian's 15) too.

Servers differ in the SQL that they know, not in what our code decides. So each hot path runs there whole, and of the flow
one test for each agent, command, watch dog and timeout: those whose statements no other test here runs. Variants that give
the same statements other values run on the embedded server only.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(960)
ROOT = Path(__file__).resolve().parent.parent
HOT_PATHS = [
    "tests/jedisite/test_partitions.py",
    "tests/jedisite/test_agents.py",
    "tests/tasks_app/test_models.py",
    "tests/tasks_app/test_dispatch.py",
    "tests/tasks_app/test_report.py",
    "tests/tasks_app/test_feeding.py",
    "tests/tasks_app/test_generating.py",
    "tests/flow/test_audit.py",
    "tests/flow/test_queue_filler.py",
    "tests/flow/test_placing.py",
    "tests/flow/test_production_broker.py",
]
FLOW = {
    "again": [
        "a_dataset_that_is_taken_away_is_left_alone_and_one_that_comes_back_goes_on",
        "children_follow_a_parent_that_is_tried_again",
        "what_was_measured_stays_and_memory_follows_the_change",
    ],
    "build": [
        "builds_that_fail_at_one_place_do_not_break_a_task_that_works_at_another",
        "many_waiting_jobs_are_activated_by_one_statement",
    ],
    "commands": ["a_retry_runs_exactly_the_failed_files_again_and_then_the_task_is_done"],
    "containers": ["an_output_named_like_a_container_is_a_dataset_of_the_task_in_it"],
    "crowding": [
        "jobs_of_users_who_had_few_are_moved_to_the_top",
        "the_oldest_jobs_in_excess_are_closed_and_made_anew_elsewhere",
    ],
    "ending": ["files_that_always_fail_leave_the_task_finished_with_an_honest_summary"],
    "ending_jobs": ["jobs_that_are_assigned_anew_are_closed_and_their_files_are_tried_again_without_a_failure"],
    "events": ["a_range_that_failed_is_tried_again_with_the_same_numbers_and_never_joined_to_others"],
    "final": [
        "a_prepared_task_is_ended_once_by_two_post_processors",
        "the_end_of_a_killed_task_is_the_end_of_all_below_it",
    ],
    "generation": ["one_step_divides_the_files_over_all_sites_each_within_its_own_limits"],
    "job_timeouts": ["nothing_happens_before_the_limit_and_the_right_thing_after"],
    "lost_files": ["a_lost_file_that_was_merged_is_made_again_from_the_inputs_of_all_that_was_in_it"],
    "merging": ["jobs_that_fail_first_are_tried_again_and_all_are_merged"],
    "messages": [
        "a_kick_ends_the_rest_of_a_task",
        "files_that_are_staged_wait_for_the_feeder_to_make_bunches_of_them",
        "old_messages_are_deleted_but_the_last_place_is_kept",
        "two_processors_share_the_work_and_do_nothing_twice",
        "two_publishers_give_each_message_one_place",
    ],
    "notification": ["a_mailer_that_is_killed_repeats_the_mail_under_the_same_id"],
    "nuclei": ["brokers_that_run_at_once_give_each_task_one_nucleus"],
    "open_datasets": [
        "a_container_to_which_a_dataset_is_added_grows",
        "files_that_vanish_before_a_job_has_them_are_lost",
    ],
    "output_validation": [
        "of_two_jobs_that_processed_the_same_input_one_loses_its_outputs",
        "outputs_that_are_missing_or_differ_are_named_on_the_task_and_can_be_recovered",
        "transient_outputs_are_deleted_when_their_time_is_over_and_nobody_reads_them",
    ],
    "parents": ["a_child_waits_for_its_parent_with_a_sentence_and_then_is_done"],
    "periodic": [
        "jobs_of_long_ago_are_archived_though_the_task_may_never_end",
        "times_that_went_by_are_made_up_for_once",
    ],
    "pilots": [
        "a_claim_whose_holder_died_is_freed_and_the_task_goes_on",
        "a_late_report_of_a_lost_attempt_changes_nothing_and_the_newer_attempt_wins",
    ],
    "preprocessing": ["preprocessing_and_build_go_together"],
    "retry_rules": [
        "input_is_reduced_step_by_step_and_the_first_values_are_kept",
        "when_many_files_need_more_memory_the_whole_task_gets_it",
    ],
    "scouting": [
        "ten_jobs_scout_and_the_rest_follows_with_what_they_measured",
        "the_second_look_exhausts_a_task_that_grew_too_large",
    ],
    "splitting": ["every_job_gets_all_files_of_a_dataset_that_is_not_split", "files_are_cut_into_ranges_of_events"],
    "steering": [
        "a_retry_that_was_cut_off_is_carried_out_or_taken_back",
        "a_soft_reassignment_lets_running_jobs_end_where_they_are",
    ],
    "task_withholder": ["a_task_waits_while_the_queue_near_its_input_is_full"],
    "throttle": ["only_the_throttled_group_waits"],
    "watchdogs": [
        "nothing_happens_before_the_limit_and_the_right_thing_after",
        "a_user_at_the_cap_gets_no_new_jobs_and_queued_ones_are_held_until_there_is_room",
        "without_a_share_express_among_the_shares_only_the_priority_is_raised",
        "a_task_too_many_of_whose_jobs_fail_is_paused_with_its_siblings",
        "a_task_that_has_reached_its_goal_is_finished_gently_once_every_file_was_tried",
        "the_last_jobs_of_a_nearly_complete_task_are_hurried_once",
    ],
}
"""Tests by file; a name that is there no more fails the run."""


def distribution_bin() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("1[5-8]/bin/postgres"))
    return found[0].parent if found else None


def test_the_flow_runs_on_the_postgresql_of_the_distribution() -> None:
    binaries = distribution_bin()
    if binaries is None:
        if os.environ.get("JEDI_TEST_ALL") == "1":
            pytest.fail("no PostgreSQL of the distribution is installed")
        pytest.skip("no PostgreSQL of the distribution is installed")
    environment = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "JEDI_HOME") and "PYTEST" not in k}
    environment["JEDI_POSTGRES_BIN"] = str(binaries)
    flow = [f"tests/flow/test_{file}.py::test_{name}" for file, names in FLOW.items() for name in names]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", *HOT_PATHS, *flow],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
