"""People are told of what needs attention once, and of its end; a mail server or a webhook that is away gets it later."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import time, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core import mail
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from jedisite.models import AuditEntry
from tasks_app.agents import alerts
from tasks_app.agents.watchdogs import old_messages
from tasks_app.alerts import due_alerts
from tasks_app.attention import keeping
from tasks_app.attention.rules.findings import Found
from tasks_app.models import Alert, AlertRule, AlertTold, AttentionItem, OutMessage

NOW = timezone.now()
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@pytest.fixture(autouse=True)
def mail_server(settings: Any) -> None:
    settings.JEDI_EMAIL_URL = "smtp://mail.lab"
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    settings.JEDI_SERVER_URL = "https://grid.lab"
    mail.outbox = []


class Receiver(HTTPServer):
    """A webhook that keeps what it gets, and answers with `status`."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.status = 200

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                server: Any = self.server
                server.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(server.status)
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook?secret=s3cret"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def rule(name: str = "nights", **more: Any) -> AlertRule:
    return AlertRule.objects.create(**{"name": name, "after_min": 0, "mail_to": ["shift@lab.org"], **more})


def problem(subject: str = "SITE_A", **more: Any) -> Found:
    values = {"kind": "failures", "key": subject, "sentence": f"{subject} fails.", "path": f"/sites/{subject}/"}
    return Found(**{**values, "owner": subject, **more})


def find(*found: Found, at: Any = NOW) -> None:
    keeping.keep(["failures", "offline"], found, at)


def told(at: Any = NOW) -> list[tuple[str, str]]:
    """Subjects and bodies of the mails that are sent then."""
    alerts.run(now=at)
    found = [(str(one.subject), str(one.body)) for one in mail.outbox]
    mail.outbox.clear()
    return found


pytestmark = pytest.mark.django_db


def test_a_problem_is_told_once_and_so_is_its_end() -> None:
    rule(mail_to=["shift@lab.org", "ada@lab.org"])
    find(problem())
    alerts.run(now=NOW)
    assert [one.to for one in mail.outbox] == [["shift@lab.org"], ["ada@lab.org"]]
    first = mail.outbox[0]
    assert first.subject == "SITE_A fails." and "https://grid.lab/sites/SITE_A/" in first.body
    headers = first.extra_headers
    assert (headers["Auto-Submitted"], headers["X-JEDI-Alert"]) == ("auto-generated", "nights")
    assert len({one.extra_headers["Message-ID"] for one in mail.outbox}) == 2
    mail.outbox.clear()
    find(problem(sentence="SITE_A fails more."), at=NOW + HOUR)
    assert told(NOW + HOUR) == []
    find(at=NOW + 2 * HOUR)
    assert told(NOW + 2 * HOUR) == [], "it may come back within minutes"
    ((subject, body),) = {*told(NOW + 2 * HOUR + keeping.FLAPS)}
    assert subject == "Over: SITE_A fails." and "Over:\n* SITE_A fails. https://grid.lab/sites/SITE_A/" in body
    assert told(NOW + 4 * HOUR) == [] and not AlertTold.objects.exists()


def test_what_flaps_is_one_problem_and_what_comes_back_later_another() -> None:
    rule()
    find(problem())
    assert len(told()) == 1
    find(at=NOW + HOUR)
    find(problem(), at=NOW + HOUR + 5 * MINUTE)
    assert told(NOW + HOUR + 6 * MINUTE) == []
    find(at=NOW + 2 * HOUR)
    find(problem(), at=NOW + 3 * HOUR)
    ((subject, _),) = told(NOW + 3 * HOUR)
    assert subject == "1 new problem, 1 over"


def test_what_is_over_soon_is_not_told() -> None:
    rule(after_min=10)
    find(problem())
    assert told(NOW + 9 * MINUTE) == []
    find(at=NOW + 9 * MINUTE)
    assert told(NOW + HOUR) == []


def test_a_storm_is_one_alert_in_half_an_hour() -> None:
    rule()
    find(*(problem(f"SITE_{n}") for n in range(40)))
    ((subject, body),) = told()
    assert subject == "40 new problems" and "* and 20 more problems" in body
    for minute in range(1, 30):
        find(*(problem(f"SITE_{n}") for n in range(40 + minute)), at=NOW + minute * MINUTE)
        assert told(NOW + minute * MINUTE) == []
    ((subject, _),) = told(NOW + 30 * MINUTE)
    assert subject == "29 new problems"


def test_in_quiet_hours_nothing_is_told_and_afterwards_what_lasts() -> None:
    night = NOW.replace(hour=23, minute=0)
    rule(quiet_from=time(22), quiet_until=time(7))
    find(problem(), problem("SITE_B"), at=night)
    assert told(night + MINUTE) == []
    find(problem(), at=night + 2 * HOUR)
    assert told(night + 7 * HOUR) == []
    ((subject, body),) = told(night + 8 * HOUR)
    assert subject == "SITE_A fails." and "SITE_B" not in body


def test_what_somebody_has_taken_on_or_put_off_is_not_told() -> None:
    rule()
    find(problem(), problem("SITE_B"), problem("SITE_C"))
    by_owner = {one.owner: one.pk for one in AttentionItem.objects.all()}
    keeping.acknowledge(by_owner["SITE_A"], by="grace", reason="I look")
    keeping.snooze(by_owner["SITE_B"], timezone.now() + HOUR, by="grace", reason="later")
    ((subject, _),) = told(timezone.now())
    assert subject == "SITE_C fails."
    ((subject, _),) = told(timezone.now() + 2 * HOUR)
    assert subject == "SITE_B fails."


def test_each_rule_tells_what_it_is_about() -> None:
    rule("a", about=["SITE_A"], mail_to=["a@lab.org"], tells_ends=False)
    rule("closed", kinds=["offline"], mail_to=["b@lab.org"])
    rule("off", active=False, mail_to=["c@lab.org"])
    find(problem(), problem("SITE_B"), problem("SITE_B", kind="offline", sentence="SITE_B is closed."))
    alerts.run(now=NOW)
    assert {one.to[0]: str(one.subject) for one in mail.outbox} == {
        "a@lab.org": "SITE_A fails.",
        "b@lab.org": "SITE_B is closed.",
    }
    mail.outbox.clear()
    find(at=NOW + HOUR)
    alerts.run(now=NOW + 2 * HOUR)
    assert [one.to for one in mail.outbox] == [["b@lab.org"]], "the other does not tell of ends"
    assert not AlertTold.objects.exists()


def test_a_rule_that_is_switched_off_forgets_what_it_told() -> None:
    one = rule()
    find(problem())
    assert len(told()) == 1
    AlertRule.objects.update(active=False)
    assert told(NOW + HOUR) == []
    AlertRule.objects.update(active=True)
    assert [subject for subject, _ in told(NOW + 2 * HOUR)] == ["SITE_A fails."]
    one.refresh_from_db()
    assert one.last_alert == NOW + 2 * HOUR


def test_a_webhook_gets_json_and_nobody_in_a_chat_is_called(receiver: Receiver) -> None:
    rule(mail_to=[], webhook=receiver.address)
    find(problem(sentence="Task <!channel> of @all fails."))
    alerts.run(now=NOW)
    (got,) = receiver.got
    row = Alert.objects.get()
    assert (got["id"], got["rule"], row.sent) == (row.pk, "nights", NOW)
    assert got["problems"][0]["sentence"] == "Task <!channel> of @all fails."
    assert "<!" not in got["text"] and "@all" not in got["text"] and "Task <" in got["text"]


@pytest.mark.parametrize("status", [302, 404, 500])
def test_a_webhook_that_does_not_take_it_gets_it_later_under_the_same_id(receiver: Receiver, status: int) -> None:
    rule(mail_to=[], webhook=receiver.address)
    find(problem())
    receiver.status = status
    alerts.run(now=NOW)
    row = Alert.objects.get()
    assert (row.sent, row.attempts, row.error) == (None, 1, f"the webhook answered {status}")
    alerts.run(now=NOW + MINUTE / 2)
    assert len(receiver.got) == 1, "it is not asked again at once"
    receiver.status = 204
    alerts.run(now=NOW + 2 * MINUTE)
    row.refresh_from_db()
    assert (row.sent, row.error) == (NOW + 2 * MINUTE, "")
    assert [one["id"] for one in receiver.got] == [row.pk, row.pk]


def test_what_nobody_takes_is_given_up_and_says_nothing_of_the_address(receiver: Receiver) -> None:
    address = receiver.address
    receiver.server_close()
    rule(mail_to=[], webhook=address)
    find(problem())
    at = NOW
    for _ in range(8):
        alerts.run(now=at)
        at += 4 * HOUR
    row = Alert.objects.get()
    assert (row.sent, row.not_sent) == (None, "given up after 8 attempts")
    assert row.error.startswith("the webhook cannot be reached: ") and "s3cret" not in row.error


def test_one_recipient_that_is_refused_keeps_no_other_waiting(settings: Any, receiver: Receiver) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    rule(webhook=receiver.address)
    find(problem())
    alerts.run(now=NOW)
    by_mail, by_webhook = Alert.objects.order_by("pk")
    assert by_mail.sent is None and "refused" in by_mail.error
    assert by_webhook.sent == NOW and len(receiver.got) == 1


def test_without_a_mail_server_an_alert_says_so(settings: Any) -> None:
    settings.JEDI_EMAIL_URL = ""
    rule()
    find(problem())
    alerts.run(now=NOW)
    assert Alert.objects.get().not_sent == "no mail server is configured (JEDI_EMAIL_URL)"


def test_an_alert_comes_in_the_feed_of_those_who_see_all(api: Callable[..., Client]) -> None:
    rule(mail_to=[], feed=True)
    find(problem())
    alerts.run(now=NOW)
    message = OutMessage.objects.get(topic="jedi.alerts")
    assert (message.kind, message.payload["msg_type"], message.payload["subject"]) == (
        "alert",
        "alert",
        "SITE_A fails.",
    )
    OutMessage.objects.update(position=1)
    assert [one["kind"] for one in api("shifter").get("/api/v2/messages/").json()["results"]] == ["alert"]
    assert api().get("/api/v2/messages/").json()["results"] == []


def test_alerts_are_deleted_after_three_months() -> None:
    rule()
    find(problem())
    told()
    old_messages.run(now=NOW + timedelta(days=89))
    assert Alert.objects.count() == 1
    old_messages.run(now=NOW + timedelta(days=91))
    assert not Alert.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_agents_at_once_tell_a_problem_once() -> None:
    held, other = rule(), rule("days", mail_to=["ada@lab.org"])
    find(problem())

    def one_pass() -> int:
        try:
            return due_alerts.make(NOW)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        with transaction.atomic():
            AlertRule.objects.select_for_update().get(pk=held.pk)
            assert pool.submit(one_pass).result(10) == 1, "a rule that another agent has is passed over"
        assert list(Alert.objects.values_list("rule", flat=True)) == [other.pk]
        assert sum(one.result(10) for one in [pool.submit(one_pass) for _ in range(8)]) == 1
    assert Alert.objects.count() == AlertTold.objects.count() == 2


GOOD: dict[str, Any] = {
    "name": "nights",
    "active": "on",
    "after_min": "5",
    "every_min": "30",
    "time_zone": "UTC",
    "mail_to": "shift@lab.org\nada@lab.org",
}


@pytest.fixture
def admin() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


def errors(answer: Any) -> dict[str, str]:
    """What is said at each field, as people read it."""
    form = answer.context["adminform"].form if answer.status_code == 200 else None
    return {name: " ".join(said) for name, said in form.errors.items()} if form else {}


def test_a_rule_is_made_in_the_admin_and_its_webhook_stays_out_of_the_audit_trail(admin: Client) -> None:
    form = {**GOOD, "kinds": ["failures", "offline"], "about": "SITE_*\n\n SITE_*\nAnalysis"}
    form |= {"webhook": "https://chat.lab/hooks/s3cret", "quiet_from": "22:00", "quiet_until": "07:00"}
    answer = admin.post("/admin/tasks_app/alertrule/add/", form)
    assert answer.status_code == 302, errors(answer)
    made = AlertRule.objects.get()
    assert (made.kinds, made.about) == (["failures", "offline"], ["SITE_*", "Analysis"])
    assert made.mail_to == ["shift@lab.org", "ada@lab.org"] and made.quiet_from == time(22)
    assert "s3cret" not in str([*AuditEntry.objects.values()])
    page = admin.get("/admin/tasks_app/alertrule/").content.decode()
    assert "22:00 to 07:00 UTC" in page and "shift@lab.org, ada@lab.org, the webhook" in page and "s3cret" not in page
    again = admin.post(f"/admin/tasks_app/alertrule/{made.pk}/change/", form)
    assert again.status_code == 302
    assert AuditEntry.objects.filter(action="admin.change").count() == 0, "nothing was changed"


def test_who_may_not_change_a_rule_does_not_see_its_webhook() -> None:
    made = rule(webhook="https://chat.lab/hooks/s3cret")
    client = Client()
    client.force_login(User.objects.create_user("grace", is_staff=True))
    grace = User.objects.get(username="grace")
    grace.user_permissions.add(Permission.objects.get(codename="view_alertrule"))
    page = client.get(f"/admin/tasks_app/alertrule/{made.pk}/change/")
    assert page.status_code == 200 and "shift@lab.org" in page.content.decode()
    assert "s3cret" not in page.content.decode()


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        ({"mail_to": ""}, "__all__", "Say who is told: an address for mail, a webhook, or the feed of messages."),
        ({"mail_to": "ada@lab.org\nnobody"}, "mail_to", "'nobody' is not an address for mail."),
        ({"mail_to": "\n".join(f"a{n}@lab.org" for n in range(21))}, "mail_to", "There are 21 addresses; at most 20"),
        ({"webhook": "ftp://chat.lab/"}, "webhook", "begins with https:// or http://"),
        ({"webhook": "https:///hook"}, "webhook", "names a host"),
        ({"webhook": "https://chat.lab:port/"}, "webhook", "This address cannot be read."),
        ({"webhook": "https://ada:pw@chat.lab/"}, "webhook", "Leave out the user's name"),
        ({"quiet_from": "22:00"}, "quiet_until", "Quiet hours need a start and an end."),
        ({"quiet_until": "22:00"}, "quiet_from", "Quiet hours need a start and an end."),
        ({"quiet_from": "22:00", "quiet_until": "22:00"}, "quiet_until", "end at another time than they begin"),
        ({"time_zone": "Europe/Zurih"}, "time_zone", "Did you mean Europe/Zurich?"),
        ({"kinds": ["weather"]}, "kinds", "weather is not one of the available choices"),
        ({"every_min": "0"}, "every_min", "greater than or equal to 1"),
        ({"after_min": "1441"}, "after_min", "less than or equal to 1440"),
        ({"about": "x" * 129}, "about", "is longer than 128 characters"),
        ({"about": "\n".join(map(str, range(51)))}, "about", "There are 51 lines; at most 50 are taken."),
    ],
)
def test_a_rule_that_could_not_work_is_refused(admin: Client, change: dict[str, Any], field: str, said: str) -> None:
    found = errors(admin.post("/admin/tasks_app/alertrule/add/", {**GOOD, **change}))
    assert said in found.get(field, ""), found
    assert not AlertRule.objects.exists()


def test_mails_are_refused_where_no_mail_server_is_configured(admin: Client, settings: Any) -> None:
    settings.JEDI_EMAIL_URL = ""
    found = errors(admin.post("/admin/tasks_app/alertrule/add/", GOOD))
    assert "set JEDI_EMAIL_URL first" in found["mail_to"]


def test_a_test_says_what_a_rule_would_tell_now(admin: Client) -> None:
    made = rule(about=["SITE_B"], after_min=60)
    find(problem(), problem("SITE_B"))
    answer = admin.post(
        "/admin/tasks_app/alertrule/", {"action": "send_test", "_selected_action": [made.pk]}, follow=True
    )
    assert "1 test alert is sent in half a minute." in answer.content.decode()
    ((subject, body),) = told(timezone.now())
    assert subject == "Test of the alert rule nights: it is about 1 of the problems of now"
    assert "SITE_B fails." in body and "SITE_A" not in body
    made.refresh_from_db()
    assert made.last_alert is None and AuditEntry.objects.filter(action="alert.test").count() == 1
    assert [subject for subject, _ in told(timezone.now() + 2 * HOUR)] == ["SITE_B fails."], (
        "its time comes all the same"
    )
