"""Pages on ranges of events: the tab of a task, the list, the part of a job's page, the section; and the resource."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from events_app.lists import range_filters
from events_app.models import Event
from events_app.rules.event_states import EventStatus
from events_app.rules.range_standing import WORDS
from tasks_app.models import Dataset, File, Job, Task, TaskStatusLog
from tests.events_app.busy_ranges import Busy, block, fill
from tests.plans import fill_table

pytestmark = pytest.mark.django_db


def text_of(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, path
    text = answer.content.decode()
    assert " style=" not in text and "<script>the payload" not in text
    return text


def words_of(text: str) -> str:
    """What a page says, without its tags."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text)).replace("\u202f", " ")


def test_the_tab_counts_ranges_and_not_rows(reader: Client, busy: Busy, django_assert_max_num_queries: Any) -> None:
    page = f"/tasks/{busy.task.id}/events/"
    with django_assert_max_num_queries(12):
        text = text_of(reader, page)
    said = words_of(text)
    assert f'{page}" aria-current="page"' in text
    assert "290 of 500 ranges are processed (58 %)." in said
    for number in (
        "100 merged",
        "150 waiting for merge",
        "40 finished",
        "50 at consumers",
        "143 ready",
        "12 without attempts",
    ):
        assert number in said, number
    assert "5 waiting for retry" in said and "45 in earlier attempts" in said
    assert "Attempts left: 483 ranges have 3, 5 ranges have 2, 12 ranges have 0." in said
    assert "No ranges yet." in said and "events 1 to 1 000" in said
    assert "20 per hour" not in said and f"{busy.consumer.id}" in said


def test_files_that_have_failed_are_named_beside_the_ranges_that_count(reader: Client, busy: Busy) -> None:
    page = f"/tasks/{busy.task.id}/events/"
    assert "do not count" not in text_of(reader, page)
    Dataset.objects.filter(task=busy.task, type="input").update(files_failed=2)
    assert "(58 %). 2 files have failed; the ranges of their attempts do not count." in words_of(text_of(reader, page))


def test_every_number_leads_to_the_list_that_it_counts(reader: Client, busy: Busy) -> None:
    for page in (f"/tasks/{busy.task.id}/events/", f"/jobs/{busy.consumer.id}/", "/events/"):
        text = text_of(reader, page)
        links = re.findall(
            r'<a href="(/tasks/\d+/events/ranges/\?[^"]*status[^"]*)">(?:<span class="tile-value">)?([\d\u202f]+)', text
        )
        assert links, page
        for url, number in links:
            assert reader.get(url.replace("&amp;", "&")).status_code == 200
            assert _ranges(reader, url) == int(number.replace("\u202f", "")), (page, url)


def _ranges(client: Client, url: str) -> int:
    path, _, query = url.replace("&amp;", "&").partition("?")
    task = path.split("/")[2]
    answer = client.get(f"/api/v2/tasks/{task}/events/?{query}&page_size=1000")
    return sum(row["ranges"] for row in answer.json()["results"])


def test_consumers_have_their_rate_since_they_started(reader: Client, busy: Busy) -> None:
    found = reader.get(f"/tasks/{busy.task.id}/events/").context["consumers"]
    rates = {one.job_id: (one.sent, one.processed, one.failed, rate and round(rate)) for one, rate in found}
    assert rates == {
        busy.consumer.id: (30, 290, 10, 145),
        busy.idle.id: (20, 0, 0, 0),
        busy.merge.id: (0, 0, 0, None),
    }


def test_files_are_paged_and_chosen_by_status(reader: Client, busy: Busy, monkeypatch: pytest.MonkeyPatch) -> None:
    from events_app.web import task_ranges

    monkeypatch.setattr(task_ranges, "FILES", 4)
    page = f"/tasks/{busy.task.id}/events/"
    first = reader.get(page)
    assert [row.file.id for row in first.context["files"]] == [file.id for file in busy.files[:4]]
    second = reader.get(f"{page}?after={first.context['more_files']}")
    assert [row.file.id for row in second.context["files"]] == [file.id for file in busy.files[4:]]
    assert second.context["more_files"] is None
    running = reader.get(f"{page}?files=running").context["files"]
    assert [row.file.id for row in running] == [file.id for file in busy.files[2:5]]
    assert "No failed input file is left to show." in text_of(reader, f"{page}?files=failed")
    given_up = File.objects.filter(task_id=busy.task.id, type="input", status="ready").first()
    assert given_up is not None
    File.objects.filter(pk=given_up.pk).update(attempt=3, max_attempt=3)
    (row,) = reader.get(f"{page}?files=failed").context["files"]
    assert (row.file.id, row.file.seen_status, row.file.status) == (given_up.id, "failed", "ready")
    assert given_up.id not in [row.file.id for row in reader.get(f"{page}?files=ready").context["files"]]
    assert reader.get(f"{page}?files=lost").status_code == 400
    assert reader.get(f"{page}?after=x").status_code == 400


def test_tasks_without_event_service_have_no_such_tab_and_an_empty_page(
    reader: Client, make_task: Callable[..., Task]
) -> None:
    task = make_task()
    assert "/events/" not in text_of(reader, f"/tasks/{task.id}/").partition("<main")[2]
    assert "The task has no ranges of events yet" in text_of(reader, f"/tasks/{task.id}/events/")
    assert "The task has no ranges of events yet" in text_of(reader, f"/tasks/{task.id}/events/ranges/")
    assert reader.get("/tasks/1/events/").status_code == reader.get("/tasks/1/events/ranges/").status_code == 404
    assert reader.get("/api/v2/tasks/1/events/").status_code == 404
    assert "No open task has event service." in text_of(reader, "/events/")
    with_events = make_task(event_service=1)
    assert f'/tasks/{with_events.id}/events/"' in text_of(reader, f"/tasks/{with_events.id}/")


def test_a_task_of_one_file_with_one_range(reader: Client, make_task: Callable[..., Task], busy: Busy) -> None:
    task = make_task(event_service=1)
    Dataset.objects.create(task_id=task.id, name="d", type="input", status="ready")
    Event.objects.bulk_create([block(task, busy.files[0], 7, 1, 1, EventStatus.SENT)])
    assert "0 of 1 range is processed (0 %)." in words_of(text_of(reader, f"/tasks/{task.id}/events/"))


def test_the_resource_is_filtered_paged_and_exported(reader: Client, busy: Busy) -> None:
    api = f"/api/v2/tasks/{busy.task.id}/events/"

    def rows(query: str) -> list[dict[str, Any]]:
        answer = reader.get(f"{api}?{query}")
        assert answer.status_code == 200, answer.content
        return answer.json()["results"]

    every = rows("page_size=1000")
    assert len(every) == 14 and sum(row["ranges"] for row in every) == 545
    assert [row["id"] for row in every] == sorted(row["id"] for row in every)
    for word in WORDS:
        assert {row["state"] for row in rows(f"status={word}")} <= {word}, word
    assert {row["state"] for row in rows("status=sent,failed")} == {"sent", "failed"}
    assert [row["ranges"] for row in rows("status=no attempt left")] == [12]
    assert {row["file_id"] for row in rows(f"file={busy.files[2].id}")} == {busy.files[2].id}
    assert len(rows(f"job={busy.idle.id}")) == 1
    assert len(rows(f"jobset={busy.jobset}")) == 14
    assert [row["error_code"] for row in rows("error=1305")] == [1305]
    assert reader.get(f"{api}?status=lost").status_code == 422
    assert reader.get(f"{api}?stauts=sent").status_code == 422
    first = reader.get(f"{api}?page_size=9").json()
    second = reader.get(first["next"]).json()
    assert [row["id"] for row in first["results"] + second["results"]] == [row["id"] for row in every]
    lines = list(csv.DictReader(io.StringIO(_whole(reader, f"{api}?format=csv&columns=id,state,ranges,file,zip"))))
    assert [(int(line["id"]), line["state"]) for line in lines] == [(row["id"], row["state"]) for row in every]
    assert {line["zip"] for line in lines} == {"", "zip.1.zip"}
    assert lines[0]["file"] == busy.files[0].lfn
    whole = _whole(reader, f"{api}?format=ndjson").splitlines()
    assert [json.loads(line)["id"] for line in whole] == [row["id"] for row in every]


def _whole(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return b"".join(answer).decode()


def test_states_of_a_large_task_are_looked_for_in_a_file_or_a_job(
    reader: Client, busy: Busy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_filters, "MOST_BLOCKS", 10)
    api = f"/api/v2/tasks/{busy.task.id}/events/"
    refused = reader.get(f"{api}?status=sent")
    assert refused.status_code == 422 and "name a file or an owner" in refused.content.decode()
    assert "name a file or an owner" in text_of(reader, f"/tasks/{busy.task.id}/events/ranges/?status=sent")
    assert reader.get(f"{api}?status=sent&file={busy.files[2].id}").status_code == 200
    assert reader.get(f"{api}?status=sent&job={busy.idle.id}").status_code == 200


def test_the_page_of_a_consumer_shows_its_ranges_its_jobset_and_zips(
    reader: Client, busy: Busy, make_job: Callable[..., Job], django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(22):
        text = text_of(reader, f"/jobs/{busy.consumer.id}/")
    said = words_of(text)
    assert f"Jobset {busy.jobset}" in said and f"{busy.consumer.id} (this)" in said
    assert f'merged by <a href="/jobs/{busy.merge.id}/"' in text
    assert "zip.<wbr>1.<wbr>zip" in text and "123.5 MB" in said
    assert "the payload stopped at the first event" in said
    assert "Zip files of outputs" in words_of(text_of(reader, f"/jobs/{busy.merge.id}/"))
    assert "Ranges of events" not in text_of(reader, f"/jobs/{make_job().id}/")


def test_the_section_lists_open_tasks_and_consumers_without_progress(
    reader: Client,
    busy: Busy,
    make_task: Callable[..., Task],
    make_job: Callable[..., Job],
    django_assert_max_num_queries: Any,
) -> None:
    make_task(event_service=1, status="done")
    make_task()
    empty = make_task(event_service=1, status="ready")
    fill(make_task, make_job)
    with django_assert_max_num_queries(12):
        answer = reader.get("/events/")
    assert [row[0].id for row in answer.context["rows"]][1:] == [empty.id, busy.task.id]
    assert busy.idle.id in {one.job_id for one in answer.context["idle"]}
    assert busy.consumer.id not in {one.job_id for one in answer.context["idle"]}
    assert 'aria-current="page"' in text_of(reader, "/events/").partition('href="/events/')[2][:60]


def test_the_tab_of_a_task_says_how_far_it_is_with_jumbo_jobs(reader: Client, busy: Busy) -> None:
    page = f"/tasks/{busy.task.id}/events/"
    assert "Jumbo jobs" not in text_of(reader, page)
    Task.objects.filter(pk=busy.task.id).update(use_jumbo="L", split_rule="ES=10,NJ=2")
    Dataset.objects.filter(task_id=busy.task.id, type="input").update(files_waiting=1)
    said = "Jumbo jobs: a jumbo job is to be replaced. The task asks for 2 at a time. 1 file waits until"
    assert said in text_of(reader, page)
    Task.objects.filter(pk=busy.task.id).update(use_jumbo="D")
    why = "75 events remain, fewer than JUMBO_MIN_EVENTS_DISABLE (1)"
    TaskStatusLog.objects.create(task_id=busy.task.id, status="running", by="jumbo_watch", reason=why)
    assert f"Jumbo jobs: switched off ({why})." in text_of(reader, page)


def test_pages_read_a_bounded_number_of_rows(
    reader: Client, busy: Busy, monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: Any
) -> None:
    """Beyond the limits numbers are marked, and the pages make the same statements."""
    from events_app.reading import range_counts

    fill_table(
        "jedi_events",
        3000,
        jeditaskid=str(busy.task.id),
        datasetid=str(busy.files[0].dataset_id),
        fileid=str(busy.files[5].id),
        pandaid=str(busy.jobset),
        job_processid="i",
        def_min_eventid="i",
        def_max_eventid="i",
        attemptnr="3",
        event_offset=str(busy.jobset),
    )
    monkeypatch.setattr(range_counts, "of_task", lambda task_id, real=range_counts.of_task: real(task_id, 100))
    with django_assert_max_num_queries(12):
        said = words_of(text_of(reader, f"/tasks/{busy.task.id}/events/"))
    assert "At least" in said and "2 000+ ready" in said
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM jedi_events WHERE jeditaskid = %s", [busy.task.id])
        assert cursor.fetchone()[0] == 3014
