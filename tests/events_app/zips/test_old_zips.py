"""Zip files of consumers go from the storage when nobody needs what is in them."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.utils import timezone

from events_app.agents import old_zips
from events_app.lifecycle.zip_rows import SCOPE
from events_app.models import Event
from events_app.rules.event_states import EventStatus
from events_app.zips.strays import EACH
from tasks_app.ddm.addresses import storage_path
from tasks_app.ddm.local_files import file_url
from tasks_app.models import CatalogueFile, Job, JobFile, Task
from tests.events_app.jobsets import Jobset, ends, follower, merged, works
from tests.events_app.ranges import FINISHED
from tests.events_app.stray_files import turn_of
from tests.flow.driving import add_dataset
from tests.locks import skips

pytestmark = pytest.mark.django_db(transaction=True)
Make = Callable[..., Jobset]


@pytest.fixture
def kept(settings: LazySettings, tmp_path: Path) -> Path:
    settings.JEDI_STORAGE = str(tmp_path)
    return tmp_path


def stored(kept: Path, jobset: Jobset, name: str, *firsts: int) -> Path:
    """The first consumer has put its ranges with these first events into a zip file of this machine's storage."""
    path = storage_path(kept, SCOPE, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"outputs")
    columns: dict[str, Any] = {"job_id": jobset.first, "task_id": jobset.task.id, "type": "zipoutput", "lfn": name}
    row = JobFile.objects.create(scope=SCOPE, status="ready", surl=file_url(path), **columns)
    ranges = Event.objects.filter(job_id=jobset.first, min_event__in=firsts)
    ranges.update(zip_row_id=row.id, objstore_id=1, path_convention=1000)
    return path


def test_a_zip_file_goes_when_all_that_is_in_it_is_merged(jobset_of: Make, kept: Path) -> None:
    jobset = jobset_of()
    works(jobset.first, 1, {1: FINISHED})
    first = stored(kept, jobset, "one.tar", 1)
    assert old_zips.run().items == 0, "its consumer is at work"
    works(jobset.first, 5, {11: FINISHED, 21: FINISHED})
    second = stored(kept, jobset, "two.tar", 11, 21)
    ends(jobset.first)
    assert old_zips.run().items == 0 and first.exists() and second.exists(), "they are to be merged"
    merged(follower(jobset.first))
    assert set(Event.objects.values_list("status", "file_not_deleted")) == {(EventStatus.MERGED, "Y")}
    assert old_zips.run().items == 2
    assert not first.exists() and not second.exists()
    assert set(Event.objects.values_list("file_not_deleted", flat=True)) == {None}
    assert set(JobFile.objects.filter(type="zipoutput").values_list("status", flat=True)) == {"deleted"}
    assert old_zips.run().items == 0


def test_a_zip_file_goes_when_what_is_in_it_is_not_wanted(jobset_of: Make, kept: Path) -> None:
    jobset = jobset_of()
    works(jobset.first, 3, dict.fromkeys((1, 11, 21), FINISHED))
    path = stored(kept, jobset, "all.tar", 1, 11, 21)
    ends(jobset.first)
    merged(follower(jobset.first), "failed")
    assert (old_zips.run().items, path.exists()) == (1, False), "the merge failed, and events are not kept"


def test_a_zip_file_whose_address_leads_elsewhere_is_left_alone(jobset_of: Make, kept: Path, tmp_path: Path) -> None:
    jobset = jobset_of()
    works(jobset.first, 3, dict.fromkeys((1, 11, 21), FINISHED))
    stored(kept, jobset, "all.tar", 1, 11, 21)
    foreign = tmp_path / "foreign"
    foreign.write_bytes(b"somebody else's")
    JobFile.objects.filter(type="zipoutput").update(surl=file_url(foreign))
    ends(jobset.first)
    merged(follower(jobset.first))
    old_zips.run()
    assert foreign.exists()


def test_a_zip_file_that_another_process_deletes_is_left_to_it(jobset_of: Make, kept: Path) -> None:
    jobset = jobset_of()
    works(jobset.first, 3, dict.fromkeys((1, 11, 21), FINISHED))
    first, second = stored(kept, jobset, "one.tar", 1), stored(kept, jobset, "two.tar", 11, 21)
    ends(jobset.first)
    merged(follower(jobset.first))
    held = JobFile.objects.get(lfn="one.tar", type="zipoutput").id
    assert skips(("job_files", "row_id", held), lambda: old_zips.run().items) == 1
    assert first.exists() and not second.exists()
    assert old_zips.run().items == 1


def test_what_a_task_keeps_for_a_retry_goes_when_it_ended_long_ago(jobset_of: Make, kept: Path) -> None:
    jobset = jobset_of(rules="ND=1")
    works(jobset.first, 3, {1: FINISHED, 11: FINISHED})
    path = stored(kept, jobset, "all.tar", 1, 11)
    ends(jobset.first)
    now = timezone.now()
    Task.objects.filter(pk=jobset.task.id).update(status="failed", state_change_time=now - timedelta(days=29))
    assert old_zips.run(now=now).items == 0, "a retry would go on with it"
    assert old_zips.run(now=now + timedelta(days=2)).items == 1
    assert not path.exists()
    assert set(Event.objects.filter(zip_row_id__isnull=False).values_list("status", flat=True)) == {
        EventStatus.DISCARDED
    }


def test_what_a_task_keeps_stays_while_it_is_tried_again(jobset_of: Make, kept: Path) -> None:
    jobset = jobset_of(rules="ND=1")
    works(jobset.first, 3, {1: FINISHED})
    path = stored(kept, jobset, "all.tar", 1)
    ends(jobset.first)
    now = timezone.now()
    Task.objects.filter(pk=jobset.task.id).update(status="failed", state_change_time=now - timedelta(days=40))
    assert skips(("jedi_tasks", "jeditaskid", jobset.task.id), lambda: old_zips.run(now=now).items) == 0
    assert path.exists()


@pytest.mark.parametrize("why", ["stray", "young", "at work", "reported", "another name", "in the catalogue", "link"])
def test_a_file_that_no_pilot_has_reported_goes_after_a_week(jobset_of: Make, kept: Path, why: str) -> None:
    jobset = jobset_of()
    name = f"EventService_premerge_{jobset.task.id}-{jobset.first}-1-1-3.tar"
    if why == "another name":
        name = name.replace("premerge", "other")
    works(jobset.first, 1, {1: FINISHED} if why == "reported" else {})
    if why != "at work":
        Job.objects.update(status="failed")
    path = stored(kept, jobset, name, 1)
    if why != "reported":
        JobFile.objects.filter(lfn=name).delete()
    if why == "in the catalogue":
        add_dataset("lab.x", 1)
        CatalogueFile.objects.update(lfn=name, scope=SCOPE, url=file_url(path))
    if why == "link":
        path.rename(kept / "elsewhere")
        path.symlink_to(kept / "elsewhere")
    now = turn_of(path, timezone.now())
    age = timedelta(days=6 if why == "young" else 8)
    written = (now - age).timestamp()
    os.utime(path, (written, written))
    old_zips.run(now=now + EACH)
    assert path.exists(), "it is in another part of the storage"
    old_zips.run(now=now)
    assert path.exists() is (why != "stray")
