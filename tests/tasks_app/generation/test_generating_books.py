"""Whatever a task wants and whatever fails: through the real tables no file is lost, none used twice, no limit broken."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brokerage_app.models import Queue
from tasks_app.agents import adder, feeder, job_generator, refiner
from tasks_app.audit import flow_invariants
from tasks_app.models import Dataset, File, Job, JobFile
from tests.flow.driving import SITE, add_dataset, add_files, add_queue, parameters, reads, submit, task, template, wake
from tests.flow.pilot import Pilot
from tests.thorough import cases

pytestmark = pytest.mark.usefixtures("tables")
GB = 1024**3
SITES = (SITE, "SITE_B")
MOST_ATTEMPTS = 3

RULES: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries({"nFilesPerJob": st.integers(1, 4)}),
    st.fixed_dictionaries({"nGBPerJob": st.integers(2, 6), "nMaxFilesPerJob": st.integers(1, 6)}),
    st.fixed_dictionaries({"nEventsPerJob": st.integers(3, 25), "nEventsPerInputFile": st.just(10)}),
    st.fixed_dictionaries({"nEventsPerJob": st.integers(3, 25), "useRealNumEvents": st.just(True)}),
    st.fixed_dictionaries({"tgtNumEventsPerJob": st.integers(3, 12), "useRealNumEvents": st.just(True)}),
)
SECONDARIES: tuple[tuple[dict[str, Any], ...], ...] = (
    (),
    (reads("lab.pile", "IN2", ratio=2),),
    (reads("lab.pile", "IN2", nFilesPerJob=1), template("pseudo_input", "--n=${SEQNUMBER}", "seq_number")),
    (reads("lab.pile", "IN2", attributes="nosplit,repeat"), template("number", "--seed=${RNDMSEED}")),
)


def clean() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """TRUNCATE jedi_tasks, jobs, job_params, job_files, jobs_statuslog, job_output_report, file_retries,
                        jedi_dataset_contents, catalogue_datasets, queues CASCADE"""
        )


@given(
    rule=RULES,
    sizes=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 30)), min_size=1, max_size=9),
    others=st.sampled_from(SECONDARIES),
    outcomes=st.lists(st.sampled_from(["finished", "failed", "more memory"]), min_size=1, max_size=12),
    room=st.integers(1, 9),
)
@settings(max_examples=cases(8, full=40), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_input_ends_once_whatever_happens_to_the_jobs(
    rule: dict[str, Any],
    sizes: list[tuple[int, int]],
    others: tuple[dict[str, Any], ...],
    outcomes: list[str],
    room: int,
) -> None:
    clean()
    add_queue(SITE, work_dir_mb=9000)
    add_queue("SITE_B", work_dir_mb=6000, max_memory_mb=8000)
    add_dataset("lab.in")
    for number, (gigabytes, events) in enumerate(sizes):
        add_files("lab.in", [number], size=gigabytes * GB, events=events)
    add_dataset("lab.pile", 3, size=1000)
    made = submit(parameters("lab.t", reads("lab.in"), *others, maxAttempt=MOST_ATTEMPTS, **rule))
    refiner.run()
    feeder.run()
    pilots = [Pilot(site=site) for site in SITES]
    turn = 0
    for _ in range(80):
        wake()
        job_generator.run(jobs_a_task=room)
        fetched = [(pilot, job) for pilot in pilots for job in pilot.fetch(5)]
        for pilot, job in fetched:
            turn += 1
            outcome = outcomes[turn % len(outcomes)]
            pilot.end(job, "finished" if outcome == "finished" else "failed")
            if outcome == "more memory":
                File.objects.filter(task_id=made, job_id=job["PandaID"], type="input").update(ram_count=3000)
        adder.run()
        if not fetched and not File.objects.filter(task_id=made, type="input", status="running").exists():
            break
    broken = flow_invariants.find()
    assert not broken, "\n".join(map(str, broken))
    check_all_ended(made)
    check_jobs(made, rule)


def check_all_ended(task_id: int) -> None:
    """Each master file is finished or has used up its attempts."""
    masters = File.objects.filter(task_id=task_id, dataset_id__in=master_ids(task_id))
    left = [f for f in masters if f.status != "finished" and (f.attempt or 0) < MOST_ATTEMPTS]
    assert not left, (left, task(task_id).error_dialog)


def master_ids(task_id: int) -> list[int]:
    return list(Dataset.objects.filter(task_id=task_id, type="input", master_id=None).values_list("id", flat=True))


def check_jobs(task_id: int, rule: dict[str, Any]) -> None:
    """No job breaks a limit of its site or task, and files of different memory share none."""
    room_mb = dict(Queue.objects.values_list("name", "work_dir_mb"))
    ids = master_ids(task_id)
    for job in Job.objects.filter(task_id=task_id):
        rows = list(JobFile.objects.filter(job_id=job.id, dataset_id__in=ids))
        names = {row.lfn for row in rows}
        # The first bunch always fits (lifecycle, trap 23): the number of files that was asked for, or one file.
        if len(names) > rule.get("nFilesPerJob", 1):
            assert (job.max_disk_mb or 0) <= room_mb[job.site]
            assert sum({row.lfn: row.size or 0 for row in rows}.values()) <= room_mb[job.site] * 1024 * 1024
        assert "nFilesPerJob" not in rule or len(rows) <= rule["nFilesPerJob"]
        assert "nMaxFilesPerJob" not in rule or len(rows) <= rule["nMaxFilesPerJob"]
        if len(rows) > 1 and "nEventsPerJob" in rule:
            assert (job.events or 0) <= rule["nEventsPerJob"]
        counted = Counter((row.lfn, row.start_event) for row in rows)
        assert max(counted.values()) == 1
