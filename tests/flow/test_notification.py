"""Mails to owners: who gets one, what it says, and that none is lost and none is sent twice for nothing."""

from __future__ import annotations

import re
import socketserver
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from pathlib import Path
from typing import Any, ClassVar

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction

from jedisite.settings import _mail_server
from tasks_app.agents import notification
from tasks_app.domain.job_errors import JobError
from tasks_app.domain.task_commands import COMMAND_ACCEPTED_IN, TaskCommand
from tasks_app.lifecycle import task_moves
from tasks_app.messaging import mail as mails
from tasks_app.messaging import sending
from tasks_app.messaging.rules import mail_summary
from tasks_app.models import Command, Job, Notification, Task
from tasks_app.submission import command_queue
from tests.flow.driving import add_dataset, parameters, reads, settle, status, submit
from tests.flow.pilot import Pilot, always, drive, failing_on

pytestmark = pytest.mark.usefixtures("books", "mail_server")
NOW = datetime(2031, 5, 6, 7, 8, tzinfo=UTC)
LOCMEM = "django.core.mail.backends.locmem.EmailBackend"


@pytest.fixture
def mail_server(settings: Any, tables: None) -> None:
    """Mail is configured, and ada has an address."""
    settings.JEDI_EMAIL_URL = "smtp://mail.lab"
    settings.EMAIL_BACKEND = LOCMEM
    settings.DEFAULT_FROM_EMAIL = "jedi@grid.lab"
    settings.JEDI_SERVER_URL = "https://grid.lab"
    User.objects.create_user("ada", email="ada@lab.org")
    mail.outbox = []


def run_task(failing: int = 0, name: str = "lab.t", **more: Any) -> int:
    add_dataset(f"{name}.in", 4)
    made = submit(parameters(name, reads(f"{name}.in"), **{"nFilesPerJob": 1, "maxAttempt": 1, **more}))
    drive(Pilot(failing_on(*(f"{name}.in.{n:05d}" for n in range(failing)))))
    return made


def text(sent: Any) -> str:
    return str(sent.body)


def test_the_owner_of_a_finished_task_reads_what_came_of_it_and_what_to_do() -> None:
    made = run_task(1, cliParams="prun --exec 'a < b' --outDS lab.t")
    notification.run(now=NOW)
    (sent,) = mail.outbox
    assert (sent.to, sent.from_email) == (["ada@lab.org"], "jedi@grid.lab")
    assert sent.subject == f"Task {made} lab.t is finished: 3 of 4 files"
    body = text(sent)
    for piece in (
        f"Your task lab.t ({made}) is finished, but a part of its input was not processed.",
        "3 of 4 files were processed (75 %), 1 failed permanently",
        "3 finished, 1 failed",
        "SITE_A (4)",
        "1 job: The payload ended with exit code 65. [exe:65]",
        "example: the payload ended with 65",
        "what helps: Read the log of one of these jobs",
        "lab.t.out: 3 files",
        "Then retry the task: only files that failed run again.",
        f"curl -X POST https://grid.lab/api/v2/tasks/{made}/commands/",
        """'{"command": "retry"}'""",
        f"https://grid.lab/tasks/{made}/",
        f"https://grid.lab/jobs/?task={made}&status=failed",
        "prun --exec 'a < b' --outDS lab.t",
    ):
        assert piece in body, f"{piece!r} is not in\n{body}"
    (html, kind) = sent.alternatives[0]
    assert kind == "text/html"
    assert "a &lt; b" in html and f'href="https://grid.lab/tasks/{made}/"' in html
    assert "\n\n\n" not in body, "the mail has holes"
    row = Notification.objects.get()
    assert (row.sent, row.recipient, row.not_sent, row.attempts) == (NOW, "ada@lab.org", "", 1)


@pytest.mark.parametrize(
    ("plan", "more", "headline", "advice"),
    [
        ("finished", {}, "is done.", "Nothing needs to be done."),
        ("failed", {}, "has failed.", "Then retry the task: unprocessed files are tried again."),
        ("finished", {"nFilesPerJob": "many"}, "is broken: it could not be run.", "Correct the task's parameters"),
    ],
)
def test_each_end_has_its_headline_and_its_advice(plan: str, more: dict[str, Any], headline: str, advice: str) -> None:
    add_dataset("lab.in", 2)
    submit({**parameters("lab.t", reads("lab.in"), nFilesPerJob=1, maxAttempt=1), **more})
    drive(Pilot(always(plan)))
    notification.run(now=NOW)
    (sent,) = mail.outbox
    assert headline in text(sent) and advice in text(sent)


def test_every_command_that_a_mail_names_is_taken_in_that_state() -> None:
    assert not [
        (state, name)
        for state, name in mail_summary.COMMANDS.items()
        if state not in COMMAND_ACCEPTED_IN[TaskCommand(name)]
    ]
    assert set(mail_summary.COMMANDS.values()) <= mail_summary._SAID.keys()


def test_a_task_that_was_finished_early_has_not_failed() -> None:
    """No job of it had run: it ends as failed, since none of its input was processed, and nothing went wrong."""
    add_dataset("lab.in", 2)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1))
    settle()
    Command.objects.create(task_id=made, name="finish", owner="ada", comment="enough")
    settle()
    assert status(made) == "failed"
    notification.run(now=NOW)
    (sent,) = mail.outbox
    assert sent.subject == f"Task {made} lab.t was finished early: 0 of 2 files"
    body = text(sent)
    assert f"({made}) was finished early, before any of its input was processed." in body
    assert "To process the rest of its input, retry the task" in body
    assert "failed" not in body.partition("Jobs")[0] and "None of its jobs had an error" not in body


def test_who_submitted_by_prun_reads_of_pbook() -> None:
    made = run_task(4, processingType="panda-client-1.5.80-jedi-run")
    notification.run(now=NOW)
    (sent,) = mail.outbox
    body = text(sent)
    assert f"    pbook retry {made}\n" in body and "curl" not in body
    assert "run it again (prun with the same --outDS)" in body and "incexec" not in body
    assert f">pbook retry {made}</pre>" in sent.alternatives[0][0] and "curl" not in sent.alternatives[0][0]


@pytest.mark.parametrize(
    ("key", "named"), [("1212", "(--memory)"), ("1235", "(--memory)"), ("1150", "set --noLoopingCheck")]
)
def test_advice_names_the_options_of_prun_to_its_users(key: str, named: str) -> None:
    error = JobError("pilot", key, "x")
    assert named in mail_summary.error_line(error, 1, from_client=True).advice
    assert named not in mail_summary.error_line(error, 1).advice


@pytest.mark.parametrize("status", ["finished", "failed"])
def test_a_task_without_errors_is_not_told_to_mend_any(status: str) -> None:
    made = mail_summary.Ended(1, "t", status, "", "", 0, NOW, None, None, 4, 3, 0, {}, {})
    assert "errors" not in " ".join(made.next_steps) and "again" in " ".join(made.next_steps)
    with_error = replace(made, errors=(mail_summary.error_line(JobError("pilot", "1165", "x"), 1),))
    assert "Look at the errors and correct their cause." in with_error.next_steps
    gone = replace(made, sites_gone=True)
    assert "with other sites" in gone.next_steps[0] and not gone.command


def test_a_broken_task_says_which_field_is_wrong() -> None:
    add_dataset("lab.in", 1)
    submit({**parameters("lab.t", reads("lab.in")), "nFilesPerJob": "many"})
    settle()
    notification.run(now=NOW)
    assert "nFilesPerJob: Expected a whole number" in text(mail.outbox[0])


@pytest.mark.parametrize("stays", [False, True])
def test_an_exhausted_task_asks_its_owner_to_decide(stays: bool) -> None:
    made = run_task(1, prodSourceLabel="managed", useExhausted=True, noEmail=False, disableAutoFinish=stays)
    assert status(made) == "exhausted"
    notification.run(now=NOW)
    body = text(mail.outbox[0])
    assert "has stopped and waits for your decision" in body
    assert "75 % of the input was processed, the goal is 100 %" in body
    assert "finish it to keep its outputs" in body
    assert ("Without a decision it will be finished" in body) is not stays, "with disableAutoFinish it waits for ever"


def test_a_pause_by_the_system_is_told_and_one_by_the_owner_is_not() -> None:
    add_dataset("lab.in", 4)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1))
    settle()
    command_queue.give_command(made, "pause", by="ada")
    settle()
    assert status(made) == "paused" and not Notification.objects.exists()
    command_queue.give_command(made, "resume", by="ada")
    settle()
    task_moves.move_task(made, "paused", by="post_processor", reason="9 of 10 jobs fail", remember=True)
    notification.run(now=NOW)
    assert "was paused by the system" in text(mail.outbox[0]) and "9 of 10 jobs fail" in text(mail.outbox[0])


def no_address(user: User) -> None:
    user.email = ""
    user.save()


def inactive(user: User) -> None:
    user.is_active = False
    user.save()


@pytest.mark.parametrize(
    ("more", "change", "why"),
    [
        ({"noEmail": True}, None, "the task asked for no mail (noEmail)"),
        ({"prodSourceLabel": "managed"}, None, "it is a production task"),
        ({}, no_address, "the account of ada has no address"),
        ({}, inactive, "ada has no account here"),
        ({}, User.delete, "ada has no account here"),
    ],
)
def test_a_mail_that_does_not_go_out_leaves_the_reason(
    more: dict[str, Any], change: Callable[[User], Any] | None, why: str
) -> None:
    run_task(**more)
    if change:
        change(User.objects.get(username="ada"))
    notification.run(now=NOW)
    row = Notification.objects.get()
    assert why in row.not_sent and row.sent is None
    assert mail.outbox == []
    assert notification.run(now=NOW + timedelta(days=1)).items == 0


def test_without_a_mail_server_that_is_the_reason(settings: Any) -> None:
    settings.JEDI_EMAIL_URL = ""
    run_task()
    notification.run(now=NOW)
    assert Notification.objects.get().not_sent == "no mail server is configured (JEDI_EMAIL_URL)"


def test_a_mail_is_written_with_the_end_of_the_task_or_not_at_all() -> None:
    add_dataset("lab.in", 1)
    made = submit(parameters("lab.t", reads("lab.in")))

    class Crash(Exception):
        pass

    with pytest.raises(Crash), transaction.atomic():
        task_moves.move_task(made, "tobroken", by="test")
        task_moves.move_task(made, "broken", by="test", reason="x")
        raise Crash
    assert not Notification.objects.exists()


class Refusing:
    """A backend that is Django's own for memory, behind a server that refuses at first, or dies after it took the mail."""

    def __init__(self, fail: type[BaseException] | None, after: bool = False) -> None:
        self.fail, self.after = fail, after

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from django.core.mail.backends.locmem import EmailBackend

        outer = self

        class Backend(EmailBackend):
            def send_messages(self, messages: Any) -> int:
                if outer.fail and not outer.after:
                    raise outer.fail("no route to host")
                count = super().send_messages(messages)
                if outer.fail:
                    raise outer.fail()
                return int(count)

        return Backend(*args, **kwargs)


def use(settings: Any, backend: Refusing) -> None:
    globals()["the_backend"] = backend
    settings.EMAIL_BACKEND = f"{__name__}.the_backend"


def test_a_server_that_does_not_answer_is_tried_again_with_growing_pauses(settings: Any) -> None:
    run_task()
    use(settings, Refusing(ConnectionRefusedError))
    now = NOW
    for attempt in range(1, sending.ATTEMPTS + 1):
        assert notification.run(now=now).items == 1
        assert notification.run(now=now).items == 0
        row = Notification.objects.get()
        assert row.attempts == attempt and "no route to host" in row.error
        now = row.next_try
    assert row.not_sent == "given up after 8 attempts"
    assert mail.outbox == []


def test_an_old_name_with_a_line_feed_stays_within_the_subject() -> None:
    made = run_task(1)
    Task.objects.filter(pk=made).update(name="lab.t\r\nBcc: eve@example.org")
    notification.run(now=NOW)
    (sent,) = mail.outbox
    assert sent.subject == f"Task {made} lab.t Bcc: eve@example.org is finished: 3 of 4 files"
    assert "Bcc" not in sent.message()


def test_a_server_that_comes_back_takes_the_mail(settings: Any) -> None:
    run_task()
    use(settings, Refusing(ConnectionRefusedError))
    notification.run(now=NOW)
    use(settings, Refusing(None))
    notification.run(now=NOW + timedelta(minutes=2))
    row = Notification.objects.get()
    assert row.sent and not row.error and len(mail.outbox) == 1


def test_a_mailer_that_is_killed_repeats_the_mail_under_the_same_id(settings: Any) -> None:
    made = run_task()
    use(settings, Refusing(KeyboardInterrupt, after=True))
    with pytest.raises(KeyboardInterrupt):
        notification.run(now=NOW)
    use(settings, Refusing(None))
    assert notification.run(now=NOW + timedelta(minutes=1)).items == 0, "whoever took it may still be at it"
    notification.run(now=NOW + sending.LEASE)
    ids = [sent.extra_headers["Message-ID"] for sent in mail.outbox]
    assert len(ids) == 2 and len(set(ids)) == 1
    assert re.fullmatch(rf"<jedi\.{made}\.\d+@grid\.lab>", ids[0])
    assert notification.run(now=NOW + timedelta(days=1)).items == 0


def test_a_name_with_line_breaks_cannot_add_headers(make_task: Callable[..., Task]) -> None:
    made = run_task()
    Task.objects.filter(pk=made).update(name="x\r\nBcc: eve@evil.org")
    notification.run(now=NOW)
    assert "\n" not in mail.outbox[0].subject and mail.outbox[0].recipients() == ["ada@lab.org"]


def test_what_jobs_say_is_shown_and_never_markup() -> None:
    made = run_task(1)
    Job.objects.filter(task_id=made, status="failed").update(exe_error_diag="<script>alert(1)</script>\n{{ x }}")
    notification.run(now=NOW)
    html = mail.outbox[0].alternatives[0][0]
    assert "<script>" not in html and "&lt;script&gt;" in html
    assert "example: <script>alert(1)</script> {{ x }}" in text(mail.outbox[0])


def test_a_task_that_ends_twice_is_told_of_twice() -> None:
    made = run_task(1)
    notification.run(now=NOW)
    command_queue.give_command(made, "retry", by="ada")
    drive(Pilot())
    notification.run(now=NOW)
    assert [re.sub(r".* is (\w+):.*", r"\1", sent.subject) for sent in mail.outbox] == ["finished", "done"]


def test_the_mail_is_a_well_formed_mail_on_the_wire(settings: Any, tmp_path: Path) -> None:
    """Django's backend that writes what would go over the wire."""
    settings.EMAIL_BACKEND, settings.EMAIL_FILE_PATH = "django.core.mail.backends.filebased.EmailBackend", str(tmp_path)
    made = run_task()
    notification.run(now=NOW)
    (written,) = tmp_path.iterdir()
    parsed = message_from_bytes(written.read_bytes())
    assert parsed["Message-ID"] == mails.message_id(Notification.objects.get())
    assert parsed["Auto-Submitted"] == "auto-generated" and parsed["X-JEDI-Task"] == str(made)
    assert [part.get_content_type() for part in parsed.walk()] == ["multipart/alternative", "text/plain", "text/html"]


class Smtp(socketserver.StreamRequestHandler):
    """As much of a mail server as takes one mail, and keeps what was said to it."""

    said: ClassVar[list[str]] = []

    def handle(self) -> None:
        self.wfile.write(b"220 mail.lab\r\n")
        in_data = False
        for raw in self.rfile:
            line = raw.decode().rstrip("\r\n")
            self.said.append(line)
            if in_data and line != ".":
                continue
            starts = line[:4].upper() == "DATA"
            self.wfile.write(b"354 go on\r\n" if starts else b"250 fine\r\n")
            in_data = starts
            if line[:4].upper() == "QUIT":
                return


def test_a_mail_goes_through_a_mail_server(settings: Any) -> None:
    made = run_task()
    Smtp.said.clear()
    with socketserver.TCPServer(("127.0.0.1", 0), Smtp) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        port = server.server_address[1]
        for name, value in _mail_server(f"smtp://127.0.0.1:{port}").items():
            setattr(settings, name, value)
        notification.run(now=NOW)
        thread.join(10)
    row = Notification.objects.get()
    assert (row.sent, row.error) == (NOW, "")
    for line in (
        "mail FROM:<jedi@grid.lab>",
        "rcpt TO:<ada@lab.org>",
        f"Subject: Task {made} lab.t is done: 4 of 4 files",
        f"Message-ID: {mails.message_id(row)}",
    ):
        assert any(said.startswith(line) for said in Smtp.said), (line, Smtp.said)


def test_an_address_of_a_mail_server_that_is_none_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match="JEDI_EMAIL_URL is not the address of a mail server"):
        _mail_server("mail.lab")


def test_a_site_that_does_not_know_its_address_sends_no_links(settings: Any) -> None:
    settings.JEDI_SERVER_URL = ""
    run_task(1)
    notification.run(now=NOW)
    assert "http" not in text(mail.outbox[0])
    assert "The command is: retry" in text(mail.outbox[0])
