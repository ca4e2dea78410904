"""What runs on the embedded PostgreSQL 18 runs on that of the distribution (Debian's 15) too.

Servers differ in the SQL that they know and in how they plan it, not in what our code decides; and what Django writes, Django
tests. So the migrations run there, the tests of indexes and partitions, those of things at once, and of all others so many that
each statement that we wrote by hand for the flow and the hot paths is sent at least once. Tests that send the same statements
with other values run on the embedded server only.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lacking import lacking

pytestmark = pytest.mark.timeout(660)
ROOT = Path(__file__).resolve().parent.parent
WHOLE = [
    "tests/jedisite/database/test_partitions.py",
    "tests/jedisite/agents/test_agents.py",
    "tests/tasks_app/models/test_models.py",
]
SOME = {
    "tasks_app/dispatch/test_dispatch": [
        "a_pilot_without_walls_gets_jobs_of_administrators_only",
        "a_storm_of_pilots_gets_each_job_exactly_once",
    ],
    "tasks_app/dispatch/test_report": [
        "a_job_that_was_handed_out_with_a_secret_is_not_taken_over_by_one_who_knows_its_attempt",
        "a_job_whose_outputs_are_on_their_way_is_kept_alive_by_its_reports",
        "a_late_success_of_a_job_that_was_given_up_is_told_so_by_every_call[failed]",
        "a_pilot_without_a_secret_is_known_by_its_site_and_the_attempt",
        "a_report_and_its_booking_at_once_agree",
        "of_two_contrary_reports_at_once_one_counts",
        'whatever_the_metadata_is_the_end_of_the_job_is_kept[{"a": NaN}]',
    ],
    "tasks_app/inputs/test_feeding": [
        "a_dataset_is_looked_at_again_only_when_its_time_has_come",
        "feeders_at_once_share_the_tasks_and_feed_each_once",
        "names_with_tabs_newlines_and_backslashes_come_back_as_they_were",
    ],
    "tasks_app/generation/test_generating": [
        "a_file_that_another_job_has_taken_since_it_was_picked_undoes_the_bunch",
        "files_that_come_back_are_tried_before_new_ones",
        "seeds_of_a_task_are_all_different_when_generators_work_at_once",
    ],
    "flow/test_again": ["a_dataset_that_is_taken_away_is_left_alone_and_one_that_comes_back_goes_on"],
    "flow/test_audit": ["each_invariant_that_is_broken_is_found"],
    "flow/test_build": ["builds_that_fail_at_one_place_do_not_break_a_task_that_works_at_another"],
    "flow/test_crowding": [
        "jobs_of_users_who_had_few_are_moved_to_the_top",
        "the_oldest_jobs_in_excess_are_closed_and_made_anew_elsewhere",
    ],
    "flow/test_final": ["a_prepared_task_is_ended_once_by_two_post_processors"],
    "flow/test_job_timeouts": [
        f"nothing_happens_before_the_limit_and_the_right_thing_after[{rule}]"
        for rule in ("active_analysis", "events", "orphan_merge", "own_transfer", "transfer_check")
    ],
    "flow/test_lost_files": ["a_lost_file_that_was_merged_is_made_again_from_the_inputs_of_all_that_was_in_it"],
    "flow/test_merging": ["jobs_that_fail_first_are_tried_again_and_all_are_merged"],
    "flow/test_messages": [
        "a_kick_ends_the_rest_of_a_task",
        "files_that_are_staged_wait_for_the_feeder_to_make_bunches_of_them",
        "two_processors_share_the_work_and_do_nothing_twice",
        "two_publishers_give_each_message_one_place",
    ],
    "flow/test_notification": ["a_mailer_that_is_killed_repeats_the_mail_under_the_same_id"],
    "flow/test_nuclei": ["brokers_that_run_at_once_give_each_task_one_nucleus"],
    "flow/test_open_datasets": [
        "a_container_to_which_a_dataset_is_added_grows",
        "files_that_vanish_before_a_job_has_them_are_lost",
    ],
    "flow/test_output_validation": ["of_two_jobs_that_processed_the_same_input_one_loses_its_outputs"],
    "flow/test_periodic": ["jobs_of_long_ago_are_archived_though_the_task_may_never_end"],
    "flow/test_pilots": ["a_claim_whose_holder_died_is_freed_and_the_task_goes_on"],
    "flow/test_placing": ["every_queue_and_share_that_was_tried_is_told", "how_cpu_is_divided_is_told"],
    "flow/test_preprocessing": ["preprocessing_and_build_go_together"],
    "flow/test_production_broker": ["each_queue_gets_jobs_or_a_reason"],
    "flow/test_queue_filler": [
        "a_queue_that_stays_empty_gets_three_tasks_and_frees_them_when_it_is_busy",
        "tasks_are_freed_with_their_queue_and_forgotten_at_their_end[the queue]",
    ],
    "flow/test_retry_rules": [
        "input_is_reduced_step_by_step_and_the_first_values_are_kept",
        "when_many_files_need_more_memory_the_whole_task_gets_it",
    ],
    "flow/test_scouting": [
        "ten_jobs_scout_and_the_rest_follows_with_what_they_measured",
        "the_second_look_exhausts_a_task_that_grew_too_large",
    ],
    "flow/test_splitting": ["every_job_gets_all_files_of_a_dataset_that_is_not_split"],
    "flow/test_steering": ["a_retry_that_was_cut_off_is_carried_out_or_taken_back"],
    "flow/test_task_withholder": ["a_task_waits_while_the_queue_near_its_input_is_full"],
    "flow/test_throttle": ["only_the_throttled_group_waits"],
    "flow/test_watchdogs": [
        *(
            f"nothing_happens_before_the_limit_and_the_right_thing_after[{rule}]"
            for rule in (
                "dataset.forgotten",
                "lock.task",
                "task.assigning",
                "task.paused_jobs",
                "task.throttled_attempts",
                "task.throttled_user",
            )
        ),
        "a_task_that_has_reached_its_goal_is_finished_gently_once_every_file_was_tried",
        "a_task_too_many_of_whose_jobs_fail_is_paused_with_its_siblings",
        "without_a_share_express_among_the_shares_only_the_priority_is_raised",
    ],
}
"""Tests by file; a name that is there no more fails the run."""


def distribution_bin() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("1[5-8]/bin/postgres"))
    return found[0].parent if found else None


def test_the_flow_runs_on_the_postgresql_of_the_distribution() -> None:
    binaries = distribution_bin()
    if binaries is None:
        lacking("no PostgreSQL of the distribution is installed")
    environment = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "JEDI_HOME") and "PYTEST" not in k}
    environment["JEDI_POSTGRES_BIN"] = str(binaries)
    some = [f"tests/{file}.py::test_{name}" for file, names in SOME.items() for name in names]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *WHOLE, *some],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
