"""Handing out jobs: each to exactly one pilot, the most urgent first."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection

from brokerage_app.models import Queue
from tasks_app.dispatch import handing_out
from tasks_app.dispatch.description import behind_walls
from tasks_app.dispatch.handing_out import Request, get_jobs
from tasks_app.dispatch.job_secrets import give_secrets
from tasks_app.labs.bench.scene import add_jobs
from tasks_app.models import Job, JobStatusLog
from tasks_app.submission.user_secrets import set_secret
from tasks_app.worker_node.pilot.oneword import of_word
from tests.flow.driving import SITE, USER, add_dataset, parameters, reads, settle, status, submit
from tests.flow.pilot import Pilot, drive
from tests.flow.threads import together

OTHER = "SITE_B"


def fetch(count: int = 1, label: str = "", site: str = SITE) -> list[int]:
    return [job["PandaID"] for job in get_jobs(Request(site, label, count))]


def drain(count: int = 1) -> list[int]:
    """Fetch until nothing is left. Returns ids in the order in which they came."""
    got: list[int] = []
    while more := fetch(count):
        got += more
    return got


def test_a_storm_of_pilots_gets_each_job_exactly_once(books: None) -> None:
    add_dataset("lab.in", 90)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1))
    settle()
    pilots = [Pilot() for _ in range(8)]

    def serve(pilot: Pilot) -> int:
        while found := pilot.fetch(1):
            pilot.start(found[0])
            pilot.end(found[0])
        return len(pilot.ran)

    shares = together(*(lambda pilot=pilot: serve(pilot) for pilot in pilots))
    got = [job["PandaID"] for pilot in pilots for job in pilot.ran]
    assert sum(shares) == 90
    assert len(set(got)) == 90
    assert set(Job.objects.filter(task_id=made).values_list("fence", flat=True)) == {1}
    assert JobStatusLog.objects.filter(status="sent").count() == 90
    drive(Pilot())
    assert status(made) == "done"


def test_a_pilot_without_walls_gets_jobs_of_administrators_only(tables: None) -> None:
    User.objects.create_user("boss", is_superuser=True)
    User.objects.create_user("former", is_superuser=True, is_active=False)
    numbers = add_jobs(9, [SITE], "activated")
    for number, name in zip(numbers, ("boss", "former", "ada") * 3, strict=True):
        Job.objects.filter(pk=number).update(user=name)
    got = get_jobs(Request(SITE, administrators_only=True)) + get_jobs(Request(SITE, count=9, administrators_only=True))
    assert [job["PandaID"] for job in got] == list(numbers[::3])
    assert len(fetch(9)) == 6, "whoever has walls gets the others"


@pytest.mark.parametrize(("given", "told"), [(20_000, 20_000), (None, 16_336)])
def test_a_job_brings_the_scratch_space_of_its_queue_beside_what_it_is_expected_to_need(
    tables: None, given: int | None, told: int
) -> None:
    Queue.objects.filter(pk=SITE).update(work_dir_mb=given)
    Job.objects.filter(pk__in=add_jobs(1, [SITE], "activated")).update(
        max_disk_mb=301, min_ram_mb=900, max_walltime_s=70
    )
    (job,) = get_jobs(Request(SITE))
    assert (job["maxDiskCount"], job["maxwdir"]) == (301, told)
    assert of_word(behind_walls(job, "walls")["jobPars"])[3:7] == ["900", "70", "301", str(told)]


def test_a_job_brings_the_secrets_of_its_user_and_debug_mode_if_its_task_asks_for_them(
    books: None, settings: Any
) -> None:
    add_dataset("lab.in", 1)
    add_dataset("lab.other", 1)
    asking = submit(parameters("lab.t", reads("lab.in"), useSecrets=True, debugMode=True))
    plain = submit(parameters("lab.u", reads("lab.other")))
    settle()
    set_secret(USER, "password", "xyzzy")
    set_secret("somebody else", "password", "other")
    jobs = {job["taskID"]: job for job in get_jobs(Request(SITE, count=10))}
    assert (jobs[asking]["secrets"], jobs[asking]["debug"]) == ('{"password": "xyzzy"}', "True")
    assert not {"secrets", "debug"} & jobs[plain].keys()
    settings.SECRET_KEY = "another key"
    give_secrets([jobs[asking]], ["sj,us"])
    assert jobs[asking]["secrets"] == "{}"


def test_pilots_that_ask_for_many_at_once_do_not_share_any(tables: None) -> None:
    add_jobs(400, [SITE], "activated")
    got = together(*(lambda: drain(7) for _ in range(6)))
    flat = [job for part in got for job in part]
    assert (len(flat), len(set(flat))) == (400, 400)


def test_jobs_go_out_by_priority_and_then_by_number(tables: None) -> None:
    ids = list(add_jobs(12, [SITE], "activated"))
    for place, job in enumerate(ids):
        Job.objects.filter(pk=job).update(current_priority=(300, 900, 500)[place % 3])
    expected = [job for start in (1, 2, 0) for job in ids[start::3]]
    assert fetch(5) == expected[:5]
    assert drain(2) == expected[5:]


def test_a_pilot_gets_jobs_of_its_own_queue_only(tables: None) -> None:
    ids = add_jobs(10, [SITE, OTHER], "activated")
    mine = set(drain())
    assert mine == {job for job in ids if Job.objects.get(pk=job).site == SITE}
    assert len(mine) == 5
    assert not fetch(site="SITE_C")


def test_a_pilot_gets_jobs_of_the_label_that_it_asks_for(tables: None) -> None:
    ids = list(add_jobs(6, [SITE], "activated"))
    Job.objects.filter(pk__in=ids[::2]).update(prod_source_label="managed")
    assert fetch(10, label="managed") == ids[::2]
    assert fetch(10, label="test") == []
    assert fetch(10) == ids[1::2]


def test_only_activated_jobs_are_handed_out(tables: None) -> None:
    for state in ("defined", "throttled", "holding", "finished", "cancelled", "sent", "running"):
        add_jobs(2, [SITE], state)
    assert fetch(10) == []


def test_a_pilot_is_given_all_that_it_needs_and_only_the_hash_of_the_secret_is_kept(books: None) -> None:
    add_dataset("lab.in", 2)
    submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=2))
    settle()
    pilot = Pilot()
    (job,) = pilot.fetch()
    assert job["inFiles"] == "lab.in.00000,lab.in.00001"
    assert job["outFiles"] == "lab.t.000001.root,lab.t.000001.log.tgz"
    assert job["checksum"] == "ad:00000000,ad:00000001"
    assert job["surlsIn"] == ["file://localhost/data/lab.in.00000", "file://localhost/data/lab.in.00001"]
    assert job["jobPars"] == "--in=lab.in.00000,lab.in.00001 lab.t.000001.root"
    assert (job["fence"], job["attemptNr"], job["taskID"]) == (1, 1, Job.objects.get().task_id)
    assert job["jobSecret"].encode() not in bytes(Job.objects.get().secret_hash or b"")
    drive(pilot)


@pytest.fixture
def old_snapshot(tables: None) -> Iterator[None]:
    """A reader that holds an old snapshot open, as a backup does: rows that are gone stay in the way."""
    with psycopg.connect(connection.connection.info.dsn, password=connection.settings_dict["PASSWORD"]) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.execute("SELECT count(*) FROM jobs").fetchone()
        yield
        reader.rollback()


def test_nothing_is_lost_or_given_twice_while_an_old_snapshot_is_held(old_snapshot: None) -> None:
    ids = add_jobs(600, [SITE], "activated")
    got = together(*(lambda: drain() for _ in range(3)))
    assert sorted(job for part in got for job in part) == list(ids)


def test_a_more_urgent_job_that_comes_later_is_found_within_the_time_of_the_hint(old_snapshot: None) -> None:
    add_jobs(3000, [SITE], "activated")
    fetch(10)
    assert handing_out._hints, "the pilot's next call goes on behind its last job"
    (urgent,) = add_jobs(1, [SITE], "activated")
    Job.objects.filter(pk=urgent).update(current_priority=10_000)
    began = time.monotonic()
    while urgent not in (got := fetch(1)):
        assert got, "jobs are left"
        assert time.monotonic() - began < handing_out.FULL_SCAN_EVERY_S + 1.0, "the urgent job was passed over"
    assert Job.objects.filter(status="activated").exists(), "it was found before its turn by number"


def test_a_job_that_is_queued_again_behind_the_hint_is_not_forgotten(tables: None) -> None:
    ids = list(add_jobs(20, [SITE], "activated"))
    Job.objects.filter(pk=ids[0]).update(status="throttled")
    assert fetch(5) == ids[1:6]
    Job.objects.filter(pk=ids[0]).update(status="activated")
    assert sorted(drain()) == [ids[0], *ids[6:]]


def test_a_job_that_becomes_more_urgent_is_handed_out_once(tables: None) -> None:
    ids = list(add_jobs(20, [SITE], "activated"))
    got = fetch(3)
    Job.objects.filter(pk=ids[10]).update(current_priority=900)
    got += drain()
    assert sorted(got) == ids
