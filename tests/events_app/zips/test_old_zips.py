"""Zip files of consumers go from the storage when nobody needs what is in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from events_app.agents import old_zips
from events_app.lifecycle.zip_rows import SCOPE
from events_app.models import Event
from events_app.rules.event_states import EventStatus
from tasks_app.ddm.addresses import storage_path
from tasks_app.ddm.local_files import file_url
from tasks_app.models import JobFile
from tests.events_app.jobsets import Jobset, ends, follower, merged, works
from tests.events_app.ranges import FINISHED
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
