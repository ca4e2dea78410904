"""Tokens of local workers: each opens its own queue and jobs, as long as its worker lives."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from brokerage_app.models import Queue
from jedisite.identity import callers as identity
from jedisite.identity.callers import row_of_token
from jedisite.models import ApiToken
from tasks_app.dispatch import closed_queues, worker_tickets
from tasks_app.dispatch.worker_tickets import LIFETIME, OneEach
from tasks_app.models import Job
from tasks_app.models.job import JobParams
from tasks_app.usage.site_use import pilot_flow, pilots_of
from tasks_app.web.machinery.worker_facts import local_pilots
from tasks_app.worker_node.pilot.oneword import of_word
from tasks_app.worker_node.submitters.base import NoTokenError
from tests.plans import fill_table, nodes, plan_of, scanned

QUEUE = "LAB"


@pytest.fixture(autouse=True)
def forgotten() -> None:
    """Nobody has been looked up yet."""
    identity._known.clear()


def call(server: LiveServer, name: str, token: str, **said: Any) -> tuple[int, str]:
    """Status and text of one of a pilot's calls."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{server.url}/api/v1/pilot/{name}", json.dumps(said).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code, exc.read().decode()


@pytest.mark.django_db(transaction=True)
def test_a_ticket_opens_the_jobs_of_its_worker_until_that_has_ended(
    live_server: LiveServer, make_job: Callable[..., Job]
) -> None:
    jobs = [make_job(site=QUEUE, status="activated", attempt=1) for _ in range(2)]
    each = OneEach(QUEUE)
    mine, other = each.make(11).token, each.make(12).token
    assert call(live_server, "acquire_jobs", mine, site_name="OTHER")[0] == 403
    status, text = call(live_server, "acquire_jobs", mine, site_name=QUEUE, worker_id="12", n_jobs=2)
    assert status == 200 and {job["PandaID"] for job in json.loads(text)["data"]["jobs"]} == {job.pk for job in jobs}
    assert set(Job.objects.values_list("worker_id", flat=True)) == {"11"}, "whatever else it says"
    said = {"job_id": jobs[0].pk, "job_status": "running", "attempt_nr": 1}
    assert call(live_server, "update_job", other, **said)[0] == 403
    assert call(live_server, "update_job", mine, **said)[0] == 200
    bulk = {"job_list": [said | {"job_id": jobs[1].pk}]}
    refused, taken = (call(live_server, "update_jobs_bulk", token, **bulk) for token in (other, mine))
    assert "not yours" in refused[1] and "not yours" not in taken[1], (refused, taken)
    each.end({mine: ""})
    assert call(live_server, "update_job", mine, **said)[0] == 401
    assert call(live_server, "acquire_jobs", other, site_name=QUEUE)[0] == 200, "that one lives"


@pytest.mark.django_db(transaction=True)
def test_jobs_of_a_walled_worker_begin_with_the_program_that_puts_up_walls(
    live_server: LiveServer, make_job: Callable[..., Job]
) -> None:
    hostile = "-p 'echo'; cat ../token # $(id) --overwriteQueueData={} --containerImage=x \n"
    for _ in range(2):
        job = make_job(site=QUEUE, status="activated", attempt=1, transformation="run_command", container_name="x")
        JobParams.objects.create(id=job.pk, params=hostile)
    ticket = OneEach(QUEUE, walled=True).make(11)
    assert re.fullmatch(r"walls_[0-9a-f]{32}", ticket.begins_with)
    body = b"siteName=LAB"
    request = urllib.request.Request(
        f"{live_server.url}/server/panda/getJob", body, {"Authorization": f"Bearer {ticket.token}"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        given = json.load(answer)
    assert given["transformation"].rpartition("/")[2] == ticket.begins_with and given["container_name"] == ""
    assert of_word(given["jobPars"]) == ["run_command", hostile, "", "0", "0", "0", "16336", "", "", "", ""]
    assert re.fullmatch(r"[A-Za-z0-9._]*", given["jobPars"]), "nothing for a shell"
    plain = OneEach(QUEUE).make(12).token
    status, text = call(live_server, "acquire_jobs", plain, site_name=QUEUE)
    assert status == 200 and json.loads(text)["data"]["jobs"][0]["jobPars"] == hostile


@pytest.mark.django_db
def test_tickets_of_a_queue_are_looked_up_together(
    django_assert_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_tickets.connections, "close_all", lambda: None)  # it would end the test's own
    tokens = [OneEach(QUEUE).make(number).token for number in range(5)]
    foreign = [OneEach("OTHER").make(7).token, identity.issue_token("by hand", "pilot", site=QUEUE, lifetime=LIFETIME)]
    ended = OneEach(QUEUE).make(8).token
    ApiToken.objects.filter(worker="8").update(expires=timezone.now())
    with django_assert_num_queries(1):
        callers = [identity.caller_of_token(token) for token in tokens]
    assert [caller and (caller.worker, caller.site) for caller in callers] == [(str(n), QUEUE) for n in range(5)]
    with django_assert_num_queries(3):
        assert [caller and caller.worker for caller in map(identity.caller_of_token, (*foreign, ended))] == [
            "7",
            "",
            None,
        ]


def opens(token: str) -> bool:
    row = row_of_token(token)
    return row is not None and not row.revoked


@pytest.mark.django_db
def test_a_ticket_lives_as_long_as_it_is_renewed_and_its_end_is_kept_for_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_tickets.connections, "close_all", lambda: None)
    each, by_hand = OneEach(QUEUE), identity.issue_token("by hand", "pilot", site=QUEUE, lifetime=timedelta(0))
    renewed, left, forgotten = (each.make(number).token for number in range(3))
    ApiToken.objects.update(expires=timezone.now() - timedelta(minutes=1))  # as when the database was away
    each.renew([renewed, by_hand])
    assert [identity.caller_of_token(token) is not None for token in (renewed, left, by_hand)] == [True, False, False]
    row = row_of_token(renewed)
    assert row and timedelta() < LIFETIME - (row.expires - timezone.now()) < timedelta(minutes=1)
    ApiToken.objects.filter(worker="2").update(expires=timezone.now() - timedelta(days=2))
    each.end({renewed: "", by_hand: ""})
    assert [opens(token) for token in (renewed, left, forgotten, by_hand)] == [False, True, False, True]
    assert [row_of_token(token) is not None for token in (renewed, forgotten)] == [True, False]
    row = row_of_token(renewed)
    assert row and row.expires <= timezone.now() and identity.caller_of_token(renewed) is None


@pytest.mark.django_db
def test_the_jobs_that_are_to_be_killed_are_found_by_their_numbers(
    monkeypatch: pytest.MonkeyPatch, make_job: Callable[..., Job]
) -> None:
    monkeypatch.setattr(worker_tickets.connections, "close_all", lambda: None)
    killed, other, runs = (
        make_job(site=QUEUE, status="running", command_to_pilot=said).pk for said in ("tobekilled", "tobekilled", None)
    )
    ended = make_job(site=QUEUE, status="closed", command_to_pilot="tobekilled").pk
    assert OneEach(QUEUE).killed([killed, runs, runs + 1, ended]) == {killed} and other


@pytest.mark.django_db
def test_jobs_that_ended_workers_leave_fail_at_once(
    monkeypatch: pytest.MonkeyPatch, make_job: Callable[..., Job]
) -> None:
    monkeypatch.setattr(worker_tickets.connections, "close_all", lambda: None)
    each = OneEach(QUEUE)
    tokens = {n: each.make(n).token for n in (1, 2, 3)}
    sent, running, killed = (
        make_job(site=QUEUE, worker_id=worker, **more).pk
        for worker, more in (
            ("1", {"status": "sent"}),
            ("2", {"status": "running"}),
            ("2", {"status": "running", "command_to_pilot": "tobekilled", "task_buffer_error_code": 102}),
        )
    )
    others = [
        make_job(site=QUEUE, worker_id="3", status="running"),
        make_job(site="OTHER", worker_id="1", status="running"),
        make_job(site=QUEUE, worker_id="1", status="holding"),
        make_job(site=QUEUE, status="running"),
    ]
    each.end({tokens[1]: "Its pilot ended with the local workers that had started it", tokens[2]: "it is gone"})
    found = {job.pk: (job.status, job.dispatcher_error_code, job.dispatcher_error_diag) for job in Job.objects.all()}
    assert found[sent] == ("failed", 100, "Its pilot ended with the local workers that had started it")
    assert found[running] == ("failed", 100, "it is gone") and found[killed] == ("closed", None, None)
    assert [found[job.pk][0] for job in others] == ["running", "running", "holding", "running"]
    assert [opens(token) for token in tokens.values()] == [False, False, True]


@pytest.mark.django_db
def test_no_pilot_is_started_at_a_queue_that_somebody_has_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_tickets.connections, "close_all", lambda: None)
    Queue.objects.create(name=QUEUE, site_name=QUEUE, status="offline", status_reason="Cooling fails.")
    closed_queues.forget()
    with pytest.raises(NoTokenError, match=r"No jobs: the queue LAB is offline \(Cooling fails\)\."):
        OneEach(QUEUE).make(1)
    assert not ApiToken.objects.exists() and OneEach("OTHER").make(1).token
    Queue.objects.update(status="online")
    closed_queues.forget()
    assert OneEach(QUEUE).make(1).token


def test_without_a_database_there_is_no_ticket(monkeypatch: pytest.MonkeyPatch) -> None:
    from django.db import OperationalError, connection

    def away() -> None:
        raise OperationalError("nobody listens")

    monkeypatch.setattr(connection, "ensure_connection", away)
    with pytest.raises(NoTokenError, match="the database cannot be asked: nobody listens"):
        OneEach(QUEUE).make(1)


@pytest.mark.django_db
def test_pilots_that_have_ended_cost_those_that_live_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands end in a day, and all of these are kept: the look-ups come with every call of a pilot."""
    monkeypatch.setattr(worker_tickets.connections, "close_all", lambda: None)
    each = OneEach(QUEUE)
    token, other = (each.make(number).token for number in range(2))
    fill_table(
        "api_tokens",
        20_000,
        kind="'pilot'",
        worker="'ended'",
        site=f"'{QUEUE}'",
        revoked="true",
        scope="'all'",
        begins_with="''",
        digest="decode(md5(i::text), 'hex')",
        expires="clock_timestamp() - i * interval '1 second'",
    )
    now = timezone.now()
    with CaptureQueriesContext(connection) as asked:
        assert identity.caller_of_token(token) is not None
        assert len(local_pilots(now, 50)) == 2 and pilot_flow(QUEUE, now).local == 2
        assert pilots_of([QUEUE], now)[QUEUE] == (0, 2)
        each.end({other: ""})
    read = [query["sql"] for query in asked if "api_tokens" in query["sql"] and "EXPLAIN" not in query["sql"]]
    assert len(read) > 5
    for sql in read:
        plan = plan_of(sql)
        assert "api_tokens" not in scanned(plan), sql
        widest = max(node["Plan Rows"] for node in nodes(plan))
        assert widest < 1000, f"{sql}\n{plan}"
