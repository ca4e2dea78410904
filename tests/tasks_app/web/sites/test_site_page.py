"""The list of queues, in the page, the API and the file alike; the pages of one queue, and what shifters may do there."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from brokerage_app.grid import queue_status
from brokerage_app.grid.samples import INTERVAL, ORIGIN
from brokerage_app.models import (
    LinkValue,
    PilotCalls,
    Queue,
    QueueActivity,
    QueueEndpoint,
    Refreshed,
    Sample,
    StorageEndpoint,
    VerdictCount,
    WorkerNode,
    WorkerStats,
)
from jedisite.identity.callers import issue_token
from jedisite.models import AuditEntry
from tasks_app.counts import statistics
from tasks_app.drawing import strips
from tasks_app.models import AttentionItem, ErrorFingerprint, Job, JobEnds, JobFailure, Worker, WorkerJob
from tasks_app.usage import site_use

pytestmark = pytest.mark.django_db
MOST_QUERIES = 12
OF_SITE = 13
NAME = "SITE/A"


@pytest.fixture
def queue(make_job: Callable[..., Job]) -> Queue:
    """A queue with jobs of two shares, pilots, a black hole, a history, storage and links."""
    now = timezone.now()
    disk = StorageEndpoint.objects.create(
        name="A_DISK", site_name="A", space_free_gb=50, space_total_gb=200, space_min_free_gb=80
    )
    queue = Queue.objects.create(name=NAME, site_name="A", pledged_cores=10, max_memory_mb=2000, storage=disk)
    QueueEndpoint.objects.create(queue=queue, endpoint=disk, order_read=1, order_write=1)
    QueueActivity.objects.create(site=NAME, started_per_h=4, last_start=now, transferring_to={"NUC": 3})
    for n, (status, share) in enumerate(
        (("running", "MC"), ("running", "Data"), ("activated", "MC"), ("transferring", "MC"))
    ):
        make_job(site=NAME, status=status, gshare=share, core_count=4, worker_node=f"slot{n}@wn1.example")
    statistics.refresh()
    for n, status in enumerate(("running", "submitted", "finished", "failed")):
        Worker.objects.create(harvester="h", worker_id=n, status=status, site=NAME)
    WorkerJob.objects.create(harvester="h", worker_id=2, job_id=1)
    last = ORIGIN + INTERVAL * ((now - ORIGIN) // INTERVAL)
    for at in (last, last - timedelta(days=7)):
        Sample.objects.create(at=at, site=NAME, finished=6, failed=2 if at == last else 0)
    for n in range(3):
        Sample.objects.create(at=last - n * INTERVAL, site=NAME, share="MC", running_cores=8)
    error = ErrorFingerprint.objects.create(
        component="pilot",
        code="1099",
        text="<b>no file",
        example="x",
        category="unknown",
        first_seen=now,
        last_seen=now,
    )
    for n in range(12):
        JobFailure.objects.create(
            id=n,
            ended=now - timedelta(minutes=5),
            fingerprint=error,
            attempt=1,
            site=NAME,
            node="wn9.example",
            user="ada",
            activity="MC",
            pilot_version="3",
            walltime_s=60,
            wasted_core_s=3600,
        )
    hour = now.replace(minute=0, second=0, microsecond=0)
    JobEnds.objects.create(hour=hour, dimension="site", key=NAME, finished=100, failed=12)
    WorkerNode.objects.create(site="A", host="wn1.example", cpu_model="EPYC", queue=NAME, logical_cpus=64)
    VerdictCount.objects.create(day=now.date(), kind="job", share="MC", site=NAME, code="low_memory", decisions=1234)
    for key, value in (("AGIS_closeness", -1), ("dashb_mbps_1h", 12.5), ("Express_queued", 7)):
        LinkValue.objects.create(source="A", destination="FAR", key=key, value=value)
    return queue


def plain(answer: Any) -> str:
    text: str = answer.content.decode().replace("\u202f", " ")
    return text


def test_pilots_of_local_services_and_their_last_call_are_on_the_page(reader: Client) -> None:
    Queue.objects.create(name="LOCAL", site_name="LOCAL")
    assert "<dt>Last call for a job</dt><dd>none</dd>" in plain(reader.get("/sites/LOCAL/"))
    hour, now = timedelta(hours=1), timezone.now()
    for number in "12":
        issue_token("local workers", "pilot", site="LOCAL", lifetime=hour, worker=number)
    for ago, got in ((2 * hour, now - 2 * hour), (hour, now - timedelta(minutes=9))):
        PilotCalls.objects.create(site="LOCAL", hour=now - ago, get_job=1, last_get_job=got)
    answer = reader.get("/sites/LOCAL/")
    text = plain(answer)
    assert answer.context["pilots"].running == 2 and "2 of local services" in text
    assert "9 min ago" in text and "not counted for three hours yet" in text


def test_a_queue_has_pages_for_what_it_does_its_nodes_and_its_data(
    reader: Client, queue: Queue, django_assert_max_num_queries: Any
) -> None:
    reader.get("/help/states/")  # the choices of the frame are kept for a minute
    with django_assert_max_num_queries(OF_SITE):
        answer = reader.get(f"/sites/{NAME}/")
    text = plain(answer)
    jobs, pilots = answer.context["jobs"], answer.context["pilots"]
    assert (jobs.running, jobs.cores, jobs.queued, jobs.transferring) == (2, 8, 1, 1)
    assert (pilots.requested, pilots.running, pilots.ended, pilots.failed, pilots.empty) == (1, 1, 2, 1, 1)
    at = ORIGIN + INTERVAL * ((timezone.now() - ORIGIN) // INTERVAL)
    assert f"Finished and failed jobs are of the hour up to {at:%Y-%m-%d %H:%M}" in " ".join(
        re.sub("<[^>]*>", "", text).split()
    )
    assert "25.0 %, a week ago 0.0 %" in text and "8 cores run, 10 are pledged" in text
    assert "12 of 12 jobs failed on wn9.example" in text and "&lt;b&gt;no file" in text and "<b>no file" not in text
    assert "Not enough memory at the site" in text and "1 234" in text
    assert [layer.name for layer in answer.context["plot"].layers] == ["MC"]
    assert "Set the status" not in text
    words = " ".join(re.sub("<[^>]*>", "", text).split())
    assert (
        f"Storage is full: 0 GB are usable at A_DISK, at least 200 GB are needed, as of {timezone.now():%Y-%m-%d}"
        in words
    )
    with django_assert_max_num_queries(MOST_QUERIES):
        nodes = reader.get(f"/sites/{NAME}/nodes/")
    assert [(row["node"], row["running"], bool(row["hole"])) for row in nodes.context["rows"]] == [
        ("wn9.example", 0, True),
        ("wn1.example", 2, False),
    ]
    with django_assert_max_num_queries(MOST_QUERIES):
        data = plain(reader.get(f"/sites/{NAME}/data/"))
    assert "50 GB of 200 GB are free" in data and "3 jobs to NUC" in data and "blocked" in data and "12.5" in data
    for closed_reads, said in ((True, "its folder is away"), (False, "outputs could not be stored")):
        StorageEndpoint.objects.update(closed_until=timezone.now(), closed_reads=closed_reads)
        assert said not in data and said in plain(reader.get(f"/sites/{NAME}/data/"))


@pytest.mark.parametrize(
    ("page", "name"),
    [
        ("/sites/SITE/A/", "job_counts"),
        ("/sites/?name=A", "job_counts"),
        ("/users/ada/", "queue_activity"),
        ("/users/", "queue_activity"),
        ("/queues/", "job_counts"),
        ("/shares/", "job_counts"),
    ],
)
def test_pages_say_when_the_jobs_that_they_show_were_counted(
    reader: Client, queue: Queue, page: str, name: str
) -> None:
    """Not when the page was made: the counts are up to a minute older."""
    for other in ("job_counts", "queue_activity"):
        at = datetime(2026, 3, 4, 5, 6, 7 if other == name else 8, tzinfo=UTC)
        Refreshed.objects.update_or_create(name=other, defaults={"at": at})
    text = reader.get(page, follow=True).content.decode()
    assert "open jobs counted at" in text and "2026-03-04 05:06:07 UTC" in text


@pytest.mark.parametrize(
    ("rights", "said"),
    [((), None), (("view_queue",), "Look at it in the admin"), (("view_queue", "change_queue"), "Edit in the admin")],
)
def test_the_admin_is_offered_to_those_whom_it_lets_in(
    client: Client, make_user: Callable[..., Any], queue: Queue, rights: tuple[str, ...], said: str | None
) -> None:
    user = make_user("eve")
    user.is_staff = True
    user.save()
    user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    client.force_login(user)
    text = client.get(f"/sites/{NAME}/").content.decode()
    offered = [words for words in ("Look at it in the admin", "Edit in the admin") if words in text]
    assert offered == ([said] if said else [])


def test_a_queue_of_which_nothing_is_known_says_so(reader: Client, sites: None) -> None:
    for path in ("", "nodes/", "data/"):
        assert 'class="empty"' in plain(reader.get(f"/sites/SITE_A/{path}")), path
        assert reader.get(f"/sites/NOWHERE/{path}").status_code == 404
    uncounted = plain(reader.get("/sites/SITE_A/"))
    assert "were not counted in the last hour" in uncounted
    assert '<span class="tile-value">–</span><span class="tile-label">finished in the last hour' in uncounted
    assert "SITE_A" in plain(reader.get("/sites/SITE_A/?window=nonsense"))


def test_a_new_queue_says_when_its_jobs_are_counted_first(reader: Client, sites: None) -> None:
    """Other queues have samples, so that nothing is wrong with the agent that writes them."""
    now = timezone.now()
    Sample.objects.create(at=now - INTERVAL)
    said = plain(reader.get("/sites/SITE_A/"))
    assert "This queue is new: its finished and failed jobs are counted for the first time within" in said
    assert "See the" not in said
    boundary = ORIGIN + INTERVAL * ((now - ORIGIN) // INTERVAL)
    Sample.objects.update(at=boundary)
    assert site_use.first_count_within(boundary + timedelta(minutes=1)) == 240 + 60
    assert site_use.first_count_within(boundary + timedelta(minutes=11)) is None, "the agent is late"


def test_a_shifter_sets_the_status_and_writes_notes(operator: Client, queue: Queue) -> None:
    form = {"status": "brokeroff", "reason": "a <i>downtime", "hours": "2"}
    for changes, says in (
        ({"reason": " "}, "reason: Give a reason"),
        ({"status": "gone"}, "status:"),
        ({"hours": "x"}, "until: Enter an end as a time"),
        ({"until": "yesterday"}, "until: Enter an end as a time"),
        ({"until": "2000-01-01T00:00"}, "until:"),
        ({"hours": "1e999"}, "until:"),
    ):
        answer = operator.post(f"/sites/{NAME}/status/", {**form, **changes}, follow=True)
        assert says in plain(answer), changes
    assert Queue.objects.get(pk=NAME).status == "online" and not AuditEntry.objects.exists()
    text = plain(operator.post(f"/sites/{NAME}/status/", form, follow=True))
    assert "then online" in text and "a &lt;i&gt;downtime" in text and "by grace" in text
    assert Queue.objects.get(pk=NAME).status == "brokeroff"
    assert "1 to 1000 characters" in plain(operator.post(f"/sites/{NAME}/note/", {"note": " "}, follow=True))
    assert "GGUS <b>" not in plain(operator.post(f"/sites/{NAME}/note/", {"note": "GGUS <b>1"}, follow=True))
    assert list(AuditEntry.objects.order_by("id").values_list("action", "object_id", "reason")) == [
        ("queue.status", NAME, "a <i>downtime"),
        ("queue.note", NAME, "GGUS <b>1"),
    ]
    assert operator.post("/sites/NOWHERE/status/", form).status_code == 404


def test_who_may_not_operate_changes_nothing(reader: Client, queue: Queue) -> None:
    for what in ("status", "note"):
        assert (
            reader.post(f"/sites/{NAME}/{what}/", {"status": "offline", "reason": "x", "note": "x"}).status_code == 403
        )
    with pytest.raises(queue_status.QueueStatusError):
        queue_status.set_status("NOWHERE", "offline", by="x", reason="y", now=timezone.now())


def test_a_strip_is_cut_to_its_window_and_shows_what_was_short() -> None:
    now = timezone.now()
    hours = [now - timedelta(hours=n) for n in range(31)]
    held = [
        strips.Held("offline", hours[30], hours[25]),
        strips.Held("online", hours[25], hours[12], "good"),
        strips.Held("test", hours[12], hours[12] + timedelta(seconds=1)),
        strips.Held("online", hours[6], None),
    ]
    pieces = strips.strip(held, hours[24], now, {"online": "ok"})
    assert [(p.name, p.tone, p.start, p.width) for p in pieces] == [
        ("online", "ok", 0, 50),
        ("test", "wait", 50, 0.4),
        ("online", "ok", 75, 25),
    ]
    assert pieces[0].words.endswith(": good") and pieces[2].words.endswith("still")


def test_the_list_shows_how_queues_do_and_its_file_is_the_same(
    reader: Client,
    queue: Queue,
    django_assert_max_num_queries: Any,
) -> None:
    now = timezone.now()
    other = Queue.objects.create(name="SITE_B", site_name="B", cloud="DE", pledged_cores=-1, status_reason="<b>down")
    WorkerStats.objects.create(harvester="h", queue=other.name, resource_type="S", status="submitted", workers=5)
    AttentionItem.objects.create(key="x", kind="x", tone="bad", sentence="x", since=now, owner=NAME, path="/")
    Job.objects.filter(site=NAME, status="running").update(
        creation_time=now - timedelta(hours=3),
        start_time=now - timedelta(hours=2),
        end_time=now - timedelta(hours=1),
        cpu_time_s=7200,
    )
    reader.get("/help/states/")  # the choices of the frame are kept for a minute
    with django_assert_max_num_queries(MOST_QUERIES):
        text = reader.get("/sites/").content.decode()
    assert "8 cores run, 10 are pledged" in text and "opportunistic" in text and "&lt;b&gt;down" in text
    assert "<b>down" not in text and f"/sites/{NAME}/why/" in text
    asked = (
        "name,cores,running,queued,transferring,pilots_requested,pilots_running,finished_1h,failed_1h,failure_percent,"
        "failure_percent_last_week,queue_time_s,cpu_efficiency,storage_free_gb,chosen,skipped,skipped_mostly,alerts,status_by"
    )
    rows = {row["name"]: row for row in reader.get(f"/api/v2/queues/?columns={asked}").json()["results"]}
    assert list(rows[NAME].values()) == [
        NAME,
        8,
        2,
        1,
        1,
        1,
        1,
        6,
        2,
        25,
        0,
        3600,
        50,
        50,
        0,
        1234,
        "low_memory",
        1,
        rows[NAME]["status_by"],
    ]
    assert (rows["SITE_B"]["cores"], rows["SITE_B"]["pilots_requested"], rows["SITE_B"]["chosen"]) == (0, 5, None)
    answer: Any = reader.get(f"/api/v2/queues/?columns={asked}&format=csv")
    table = {row["name"]: row for row in csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode()))}
    assert {name: table[NAME][name] for name in ("cores", "skipped_mostly")} == {
        "cores": "8",
        "skipped_mostly": "low_memory",
    }
    for query, names in (
        ("opportunistic=true", ["SITE_B"]),
        ("cloud=DE", ["SITE_B"]),
        ("name=site/", [NAME]),
        ("status=offline", []),
        ("ordering=-pledged_cores", [NAME, "SITE_B"]),
    ):
        assert [row["name"] for row in reader.get(f"/api/v2/queues/?{query}").json()["results"]] == names, query


def test_storage_of_a_queue_is_also_what_was_imported_for_it(reader: Client) -> None:
    bare = Queue.objects.create(name="BARE", site_name="A")
    page = "/sites/BARE/"
    assert "<dt>Storage</dt><dd>none</dd>" in reader.get(page).content.decode()
    for name in ("B_TAPE", "A_DISK"):
        endpoint = StorageEndpoint.objects.create(name=name, site_name="A")
        for scope in ("default", "analysis"):
            QueueEndpoint.objects.create(queue=bare, endpoint=endpoint, scope=scope, order_read=1)
    assert "<dt>Storage</dt><dd>A_DISK, B_TAPE</dd>" in reader.get(page).content.decode()


@pytest.mark.parametrize("none", [None, 0])
def test_lists_say_where_there_is_no_limit(reader: Client, make_job: Callable[..., Job], none: int | None) -> None:
    names = ("max_memory_mb", "max_walltime_s", "work_dir_mb")
    Queue.objects.create(name="FREE", site_name="A", **dict.fromkeys(names, none))
    Queue.objects.create(name="BOUND", site_name="A", **dict.fromkeys(names, 86_400))
    rows = reader.get(f"/sites/?ordering=name&columns=name,{','.join(names)}").context["table"]
    said = [[cell.html.replace("\u202f", " ") for cell in row[1:]] for _, row in rows]
    assert said == [["86 400 MB", "1 d", "86 400 MB"], ["no limit", "no limit", "not set"]]
    unset = "not set: 16 336 MB, or more if a job is expected to need more"
    for name, words in (("FREE", unset), ("BOUND", "86 400 MB")):
        assert f"<dt>Scratch disk</dt><dd>{words}</dd>" in plain(reader.get(f"/sites/{name}/"))
    job = make_job(max_walltime_s=none)
    ((_, row),) = reader.get("/jobs/?columns=id,max_walltime_s").context["table"]
    assert row[1].html == "no limit"
    assert (
        '<th scope="row">Walltime</th><td class="num">no limit</td>' in reader.get(f"/jobs/{job.id}/").content.decode()
    )


def test_the_page_of_a_job_calls_its_limit_of_time_a_limit_and_not_a_request(
    reader: Client, make_job: Callable[..., Job]
) -> None:
    page = plain(reader.get(f"/jobs/{make_job(max_walltime_s=86_400).id}/"))
    assert '<th scope="row">Walltime</th><td class="num">limit 1 d</td>' in page


def test_the_list_has_the_free_space_of_the_storage_that_is_written_first(reader: Client) -> None:
    named = StorageEndpoint.objects.create(name="NAMED", site_name="A", space_free_gb=7)
    for name, endpoints in (
        ("NAMING", ()),
        ("LISTING", (("SECOND", 2, 3), ("FIRST", 1, 0))),
        ("READING", (("READ", None, 9),)),
    ):
        queue = Queue.objects.create(name=name, site_name="A", storage=named if name == "NAMING" else None)
        for endpoint, order, free in endpoints:
            StorageEndpoint.objects.create(name=endpoint, site_name="A", space_free_gb=free)
            QueueEndpoint.objects.create(queue=queue, endpoint_id=endpoint, order_read=1, order_write=order)
    rows = reader.get("/api/v2/queues/?columns=name,storage_free_gb").json()["results"]
    assert {row["name"]: row["storage_free_gb"] for row in rows} == {"NAMING": 7, "LISTING": 0, "READING": None}


def test_the_ends_of_an_hour_are_those_of_a_whole_hour(queue: Queue) -> None:
    """Also before the samples of the interval that has just ended are there."""
    last = ORIGIN + INTERVAL * ((timezone.now() - ORIGIN) // INTERVAL)
    Sample.objects.all().delete()
    for n in range(13):
        for week in (timedelta(), timedelta(days=7)):
            Sample.objects.create(at=last - n * INTERVAL - week, site=NAME, finished=6 if n < 12 else 100, failed=1)
    found = site_use.ends(last + INTERVAL + timedelta(seconds=20), NAME)[NAME]
    assert (found.finished, found.failed, found.finished_then, found.failed_then, found.at) == (72, 12, 72, 12, last)
    assert site_use.ends(last + timedelta(hours=2), NAME) == {}


def test_where_nothing_has_ended_no_part_of_nothing_is_told(reader: Client) -> None:
    Queue.objects.create(name="NEW", site_name="A")
    text = reader.get("/sites/NEW/").content.decode()
    assert text.count("no harvester worker has ended") == 2 and "not counted" in text
    assert "of the last 0" not in text and "a week ago" not in text
    last = ORIGIN + INTERVAL * ((timezone.now() - ORIGIN) // INTERVAL)
    for n in range(13):
        Sample.objects.create(at=last - n * INTERVAL, site="NEW", finished=0, failed=0)
    assert "no job ended" in reader.get("/sites/NEW/").content.decode()
