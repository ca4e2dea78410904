"""Our pilot, as a process, takes ranges of events from the real server and reports on them, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import tarfile
import urllib.parse
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from brokerage_app.models import Queue, StorageEndpoint
from events_app.lifecycle.range_ends import end_consumer
from events_app.lifecycle.range_moves import NewBlock, insert_blocks
from events_app.models import Event
from events_app.rules.event_states import EventStatus
from events_app.rules.range_blocks import RangeBlock
from jedisite.database.sql import hot_cursor
from tasks_app.agents import adder
from tasks_app.dispatch import queue_storages
from tasks_app.models import Dataset, File, Job, JobFile, JobParams, Task
from tests.events_app.jobsets import ends, follower, make_jobset
from tests.events_app.ranges import DATASET, JOBSET, TASK, insert
from tests.installation import wait_for

pytestmark = pytest.mark.django_db(transaction=True)
FILE, EVENTS, LENGTH = 7, 120, 4
LINES = b"".join(b"%d\n" % number for number in range(1, EVENTS + 1))
# The ranges of the second half wait for a word of the test.
COMMAND = (
    'sed -n "${{FIRST_EVENT}},${{LAST_EVENT}}p" %IN > out.txt; [ $LAST_EVENT -le 60 ] || [ -e {go} ] || sleep 1000'
)


@pytest.fixture
def storage(tmp_path: Path, db: None) -> Iterator[Path]:
    """The queue's storage, and the file."""
    folder = tmp_path / "storage"
    folder.mkdir()
    (folder / "in.txt").write_bytes(LINES)
    StorageEndpoint.objects.create(name="SE", site_name="SITE_A", path=str(folder), number=12)
    Queue.objects.create(name="SITE_A", site_name="SITE_A", storage_id="SE", data={"zip_time_gap": 0.2})
    queue_storages.forget()
    yield folder
    queue_storages.forget()


@pytest.fixture
def ranges(make_task: Callable[..., Task]) -> None:
    """Those of the file, in the books."""
    task = make_task(id=TASK, event_service=1)
    Dataset.objects.create(id=DATASET, task=task, name="lab.in", type="input", status="ready")
    File.objects.create(
        id=FILE, task_id=TASK, dataset_id=DATASET, lfn="in.txt", guid="g", scope="lab", status="running"
    )
    insert(RangeBlock(FILE, 1, EVENTS, LENGTH))


@pytest.fixture
def make_job(storage: Path, ranges: None, make_consumer: Callable[..., int], tmp_path: Path) -> Callable[[], int]:
    def make() -> int:
        job = make_consumer(status="activated", site="SITE_A", transformation="event_command", attempt=1, core_count=2)
        options = """-i "['in.txt']" -o "{'out.txt': 'lab.out.1'}" """
        command = urllib.parse.quote(COMMAND.format(go=tmp_path / "go"))
        JobParams.objects.create(id=job, params=f'-p "{command}" {options}')
        checksum, url = f"ad:{zlib.adler32(LINES):08x}", f"file://localhost{storage}/in.txt"
        about = {"job_id": job, "task_id": TASK, "scope": "lab"}
        JobFile.objects.create(
            **about, type="input", lfn="in.txt", size=len(LINES), checksum=checksum, surl=url, file_id=FILE
        )
        JobFile.objects.create(**about, type="output", lfn="lab.out.1", destination_se="SE")
        JobFile.objects.create(**about, type="log", lfn=f"lab.{job}.log.tgz", destination_se="SE", guid="h")
        return job

    return make


def processed() -> dict[int, int]:
    """The job of each range that is finished or done, by its first event. None is there twice."""
    rows = Event.objects.filter(status__in=(EventStatus.FINISHED, EventStatus.DONE))
    found: dict[int, int] = {}
    for first, last, job in rows.values_list("min_event", "max_event", "job_id"):
        for event in range(first, last + 1, LENGTH):
            assert event not in found
            found[event] = job
    return found


def stored() -> dict[int, bytes]:
    """What lies in the storage of ranges that the books have as processed, by the first event."""
    content: dict[int, bytes] = {}
    for row in JobFile.objects.filter(type="zipoutput"):
        path = Path((row.surl or "").removeprefix("file://localhost"))
        assert f"ad:{zlib.adler32(path.read_bytes()):08x}" == row.checksum and row.destination_se == "12/1000"
        with tarfile.open(path) as tar:
            for member in tar:
                first = int(member.name.split("-")[-2])
                assert first not in content, "no output is there twice"
                content[first] = (tar.extractfile(member) or tar).read()  # type: ignore[union-attr]
    return content


def test_a_second_pilot_goes_on_where_a_killed_one_was_and_no_range_is_processed_twice(
    make_job: Callable[[], int], start: Callable[[], subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    first = make_job()
    killed = start()
    wait_for(lambda: len(processed()) == 15, "the report of the first half")
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait(30)
    blocks = Event.objects.filter(status=EventStatus.SENT, job_id=first).values_list("min_event", "max_event")
    in_hand = sum(len(range(low, high + 1, LENGTH)) for low, high in blocks)
    before = processed()
    assert set(before) == set(range(1, 61, LENGTH)) == set(stored())
    Job.objects.filter(pk=first).update(status="failed")
    with hot_cursor() as cursor:
        ended = end_consumer(cursor, TASK, first, only_failed_count=False)
    assert (ended.done, ended.released) == (15, in_hand) and in_hand >= 2, "what it had is given to others"
    (tmp_path / "go").touch()
    second = make_job()
    assert start().wait(120) == 0
    assert Job.objects.get(pk=second).events == 60
    assert processed() == before | dict.fromkeys(range(61, EVENTS, LENGTH), second)
    content = stored()
    assert b"".join(content[one] for one in sorted(content)) == LINES


def test_a_job_that_was_handed_out_again_gets_no_ranges_for_its_first_pilot(
    make_job: Callable[[], int], start: Callable[[], subprocess.Popen[bytes]]
) -> None:
    job = make_job()
    pilot = start()
    wait_for(lambda: len(processed()) == 15, "the report of the first half")
    Job.objects.filter(pk=job).update(fence=9)
    assert pilot.wait(120) == 0, "it gives up the job, which is not its own any more"
    assert len(processed()) == 15


def test_a_killed_job_ends(make_job: Callable[[], int], start: Callable[[], subprocess.Popen[bytes]]) -> None:
    job = make_job()
    pilot = start()
    wait_for(lambda: len(processed()) == 15, "the report of the first half")
    Job.objects.filter(pk=job).update(command_to_pilot="tobekilled")
    assert pilot.wait(120) == 0
    assert len(processed()) == 15 and len(stored()) == 15


def test_a_file_is_processed_by_two_consumers_and_merged_by_a_third_job(
    storage: Path,
    make_task: Callable[..., Task],
    make_dataset: Callable[..., Dataset],
    start: Callable[[], subprocess.Popen[bytes]],
    tmp_path: Path,
) -> None:
    waits = {"status": "activated", "fence": 0, "heartbeat_at": None, "start_time": None}
    jobset = make_jobset(make_task, make_dataset, events=EVENTS, transformation="run_command", core_count=2, **waits)
    with hot_cursor() as cursor:
        block = RangeBlock(jobset.file.id, 1, EVENTS, LENGTH, attempts=3)
        insert_blocks(cursor, [NewBlock(jobset.task.id, jobset.inputs.id, JOBSET, block)])
    File.objects.filter(task_id=jobset.task.id, type="output").update(lfn="lab.out.txt")
    files = JobFile.objects.filter(job_id=jobset.first)
    files.filter(type="output").update(lfn="lab.out.txt")
    files.exclude(type="input").update(destination_se="SE")
    url, checksum = f"file://localhost{storage}/in.txt", f"ad:{zlib.adler32(LINES):08x}"
    files.filter(type="input").update(surl=url, checksum=checksum, size=len(LINES))
    command = urllib.parse.quote(COMMAND.format(go=tmp_path / "go"))
    JobParams.objects.filter(pk=jobset.first).update(params=f"""-p "{command}" -o "{{'out.txt': 'lab.out.txt'}}" """)
    killed = start()
    wait_for(lambda: len(processed()) == 15, "the report of the first half")
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait(30)
    assert ends(jobset.first)[:2] == ("merging", "es_retry")
    (tmp_path / "go").touch()
    assert start().wait(120) == 0
    adder.run()
    assert Job.objects.get(pk=follower(jobset.first)).sub_status == "es_merge"
    assert start().wait(120) == 0
    for _ in range(3):
        adder.run()
    jobset.file.refresh_from_db()
    assert jobset.file.status == "finished"
    merge = Job.objects.get(task_id=jobset.task.id, event_service=2)
    assert (merge.status, merge.transformation) == ("finished", "merge_events")
    made = JobFile.objects.get(job_id=merge.id, type="output")
    assert Path((made.surl or "").removeprefix("file://localhost")).read_bytes() == LINES
