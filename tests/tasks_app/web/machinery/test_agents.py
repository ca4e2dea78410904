"""The pages on agents, and the orders that agents are given there."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from django_q.models import OrmQ

from jedisite.models import Agent, AgentPass, AuditEntry
from tests.tasks_app.web.test_pages import MOST_QUERIES

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent(db: None) -> Agent:
    Agent.objects.all().delete()
    now = timezone.now()
    for hours, error in ((30, "x"), (2, "Traceback\n<b>ValueError</b>: no"), (1, "")):
        AgentPass.objects.create(
            agent="feeder",
            started_at=now - timedelta(hours=hours),
            duration_s=0.1 * hours,
            items=3,
            note="3 <i>fed</i>",
            error=error,
            host="here",
        )
    Agent.objects.create(name="probe", period_s=5, due_at=now - timedelta(hours=1))
    return Agent.objects.create(name="feeder", title="Finds files", period_s=5, due_at=now, passes=3)


def test_the_pages_say_what_agents_do_and_what_waits_for_them(
    reader: Client, agent: Agent, make_task: Any, django_assert_max_num_queries: Any
) -> None:
    for _ in range(2):
        make_task(status="defined")
    for number in range(60):
        AgentPass.objects.create(agent="probe", duration_s=0.1, host="here", note=str(number))
    OrmQ.objects.create(key="jedi", payload="x", lock=timezone.now() - timedelta(seconds=90))
    with django_assert_max_num_queries(MOST_QUERIES):
        answer = reader.get("/agents/")
    text = answer.content.decode()
    assert answer.context["sentence"] == "2 agents: 1 late, 1 ok (late: probe)."
    assert 'href="/tasks/?status=defined">2 tasks</a>' in text and "oldest 1 min" in text
    assert 'href="/agents/feeder/?only=errors">1</a>' in text and "median 200 ms, 95 % within 2.7 s" in text
    assert "3 &lt;i&gt;fed&lt;/i&gt;" in text and "<i>fed" not in text and "Run once" not in text
    with django_assert_max_num_queries(MOST_QUERIES):
        text = reader.get("/agents/feeder/").content.decode()
    assert "Finds files" in text and "No manual runs or pauses" in text and "Set the period" not in text
    found = {
        kind: len(reader.get(f"/agents/feeder/?only={kind}").context["passes"]) for kind in ("", "errors", "items")
    }
    assert found == {"": 3, "errors": 2, "items": 3}
    assert "No such pass" in reader.get("/agents/probe/?only=errors").content.decode()
    first = reader.get("/agents/probe/").context["page"]
    assert len(first.rows) == 50 and len(reader.get(first.next_url).context["passes"]) == 10
    failed = AgentPass.objects.filter(agent="feeder").exclude(error="").latest("id")
    text = reader.get(f"/agents/feeder/passes/{failed.id}/").content.decode()
    assert "&lt;b&gt;ValueError" in text and f"/passes/{failed.id - 1}/" in text and f"/passes/{failed.id + 1}/" in text
    for missing in ("/agents/nobody/", f"/agents/probe/passes/{failed.id}/", f"/agents/probe/passes/{10**30}/"):
        assert reader.get(missing).status_code == 404, missing
    assert reader.post("/agents/feeder/order/", {"action": "run"}).status_code == 403


def test_operators_order_agents_and_say_why(operator: Client, agent: Agent) -> None:
    def order(**given: str) -> str:
        (said,) = operator.post("/agents/feeder/order/", given, follow=True).context["messages"]
        agent.refresh_from_db()
        return str(said)

    assert "Set the period" in operator.get("/agents/feeder/").content.decode()
    assert "One pass of" in order(action="run", back="list") and OrmQ.objects.count() == 1
    assert "Please give a reason" in order(action="pause") and not agent.paused
    assert order(action="pause", reason="Rucio is down") == "feeder is now paused." and agent.paused
    assert "already" in order(action="pause", reason="again")
    assert order(action="resume", reason="it is back") == "feeder is now active." and not agent.paused
    for period in ("0.1", "nan", "1e9", "x", ""):
        assert "eriod" in order(action="period", reason="too slow", period_s=period) and agent.period_s == 5
    Agent.objects.update(due_at=timezone.now() + timedelta(hours=1))
    assert "every 2.0 s" in order(action="period", reason="too slow", period_s="2")
    assert agent.period_s == 2 and agent.due_at < timezone.now() + timedelta(seconds=3)
    assert "not one of the available" in order(action="delete", reason="x")
    assert list(AuditEntry.objects.order_by("id").values_list("action", "reason", "details")) == [
        ("agent.run", "", None),
        ("agent.pause", "Rucio is down", None),
        ("agent.resume", "it is back", None),
        ("agent.period", "too slow", {"changed": {"period_s": [5.0, 2.0]}}),
    ]
    assert "Rucio is down" in operator.get("/agents/feeder/").content.decode()
