"""Fine-grained files whose jobs run with pilots of both kinds, and files that a retry rule takes the last attempt from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from brokerage_app.models import StorageEndpoint
from events_app.models import Event
from tasks_app.agents import adder, job_generator
from tasks_app.models import Dataset, File, Job, JobFile
from tests.flow.balance import assert_books_balance
from tests.flow.driving import settle, status, task, wake
from tests.flow.pilot import Pilot
from tests.flow.test_cloned_tasks import FINISHED, MERGED, READY, fine, input_of, outputs, ranges
from tests.flow.test_retry_rules import rule

pytestmark = pytest.mark.usefixtures("tables")
EVENTS = {1, 2, 3, 4}


class Site:
    """Jobs of the file of a task, with a pilot of either kind."""

    def __init__(self, task_id: int, client: Client) -> None:
        self.task_id, self.client, self.pilot = task_id, client, Pilot(with_secret=False)

    def fetch(self) -> dict[str, Any]:
        wake()
        job_generator.run()
        (job,) = self.pilot.fetch(1)
        self.pilot.start(job)
        return job

    def _calls(self, name: str, **form: Any) -> dict[str, Any]:
        texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in form.items()}
        answer: dict[str, Any] = self.client.post(f"/server/panda/{name}", texts).json()
        assert answer["StatusCode"] == 0 and set(answer.get("Returns", [True])) == {True}, answer
        return answer

    def by_pandas(self, job: dict[str, Any], events: set[int]) -> None:
        """PanDA's pilot reports events by the number of the jobset, and stores an output of the job itself."""
        jobset, file = (
            Job.objects.get(pk=job["PandaID"]).jobset_id,
            File.objects.get(task_id=self.task_id, type="input"),
        )
        done = [
            {"eventRangeID": f"{self.task_id}-{jobset}-{file.id}-{event}-1", "eventStatus": "finished"}
            for event in sorted(events)
        ]
        self._calls("updateEventRanges", version="2", eventRanges=done)
        self.pilot.end(job, "finished")
        adder.run()

    def by_ours(self, job: dict[str, Any], events: set[int], how: str = "incomplete") -> None:
        """Our pilot takes ranges, and stores their outputs in a zip file; the job itself has none."""
        told = self._calls("getEventRanges", pandaID=str(job["PandaID"]), nRanges=str(len(EVENTS)))["eventRanges"]
        names = {one["startEvent"]: one["eventRangeID"] for one in told}
        done = [{"eventRangeID": names[event], "eventStatus": "finished"} for event in sorted(events)]
        if done:
            lfn = f"zip.{job['PandaID']}"
            store = {"lfn": lfn, "objstoreID": 12, "fsize": 5, "adler32": "0000abcd", "numEvents": len(done)}
            self._calls("updateEventRanges", version="1", eventRanges=[{"zipFile": store, "eventRanges": done}])
        self.pilot.end(job, how)
        adder.run()

    def merge(self) -> dict[str, Any]:
        wake()
        (job,) = self.pilot.fetch(1)
        assert Job.objects.get(pk=job["PandaID"]).event_service == 2
        self.pilot.start(job)
        self.pilot.end(job)
        settle()
        return job

    def sub_status(self, job: dict[str, Any]) -> tuple[str, str | None]:
        row = Job.objects.get(pk=job["PandaID"])
        return row.status, row.sub_status

    def merged_once(self) -> set[int]:
        """Events that an output has."""
        found = [n for first, last, _, state in ranges(self.task_id) if state == MERGED for n in range(first, last + 1)]
        assert len(found) == len(set(found)), found
        return set(found)

    def made(self) -> int:
        return sum(state == "finished" for state in outputs(self.task_id).values())


@pytest.fixture
def site(api: Callable[..., Client], tmp_path: Path) -> Site:
    made = fine()
    StorageEndpoint.objects.create(name="ZIPS", site_name="SITE_A", path=str(tmp_path), number=12)
    return Site(made, api("pilot", site="SITE_A"))


def test_what_our_pilot_adds_to_an_output_of_pandas_is_merged_beside_it(site: Site) -> None:
    first = site.fetch()
    site.by_pandas(first, {1, 2})
    assert site.sub_status(first) == ("finished", "fg_partial")
    second = site.fetch()
    site.by_ours(second, {3, 4})
    assert site.sub_status(second) == ("finished", "fg_done") and input_of(site.task_id)[0] == "running"
    merge = site.merge()
    (read,) = JobFile.objects.filter(job_id=merge["PandaID"], type="zipinput").values_list("lfn", flat=True)
    assert read == f"zip.{second['PandaID']}", "what the first job has stored is an output already"
    assert (status(site.task_id), site.made(), site.merged_once()) == ("done", 2, EVENTS), task(site.task_id)
    assert_books_balance()


def test_what_our_pilot_left_in_zip_files_is_processed_again_where_pandas_ends_the_file(site: Site) -> None:
    """An output that a job has stored itself cannot get what lies beside it: no event is lost, and none is there twice."""
    first = site.fetch()
    site.by_ours(first, {1, 2}, "failed")
    assert site.sub_status(first) == ("finished", "fg_partial")
    second = site.fetch()
    site.by_pandas(second, {3, 4})
    assert site.sub_status(second) == ("finished", "fg_partial") and input_of(site.task_id) == ("ready", 2)
    third = site.fetch()
    left = {n for low, high, _, state in ranges(site.task_id) if state == READY for n in range(low, high + 1)}
    assert left == {1, 2}
    site.by_pandas(third, left)
    settle()
    assert (status(site.task_id), site.made(), site.merged_once()) == ("done", 2, EVENTS), task(site.task_id)
    assert_books_balance()


def test_a_rule_that_takes_the_last_attempt_leaves_one_where_finished_events_wait_to_be_merged(site: Site) -> None:
    """The end of the last job merges them; the one before it has ended already."""
    File.objects.filter(task_id=site.task_id, type="input").update(max_attempt=9)
    site.by_ours(site.fetch(), {1, 2}, "failed")
    rule(1305, "no_retry")
    site.by_ours(site.fetch(), set(), "failed")
    file = File.objects.get(task_id=site.task_id, type="input")
    assert (file.status, file.attempt, file.max_attempt) == ("ready", 2, 3)
    read = Dataset.objects.get(task_id=site.task_id, type="input")
    assert (read.files_used, read.files_failed) == (0, 0)
    last = site.fetch()
    site.by_ours(last, set(), "failed")
    assert site.sub_status(last) == ("failed", "fg_stumble") and input_of(site.task_id)[0] == "running"
    site.merge()
    assert (status(site.task_id), input_of(site.task_id)[0]) == ("finished", "partial"), task(site.task_id)
    assert (site.made(), site.merged_once()) == (1, {1, 2})
    assert "2 events were given up" in (task(site.task_id).error_dialog or "")
    assert_books_balance()


def test_a_rule_that_takes_the_last_attempt_leaves_none_where_nothing_is_finished(site: Site) -> None:
    rule(1305, "no_retry")
    site.by_ours(site.fetch(), set(), "failed")
    settle()
    assert status(site.task_id) == "failed" and not Event.objects.filter(status=FINISHED).exists()
    assert_books_balance()
