"""Failures of packages are mailed to the owner of their workflow, many in one mail."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.utils import timezone

from tasks_app.agents import failures, notification, workflows
from tasks_app.models import JobFailure, Notification, Workflow
from tests.flow.driving import add_dataset
from tests.flow.pilot import Pilot, drive, failing_on
from tests.flow.test_workflows import MERGE, begin

pytestmark = pytest.mark.usefixtures("books")
QUIET = MERGE.replace("  binary A", "  package quiet\n  binary A")


@pytest.fixture(autouse=True)
def mail_server(settings: Any, tables: None) -> None:
    settings.JEDI_EMAIL_URL = "smtp://mail.lab"
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    settings.JEDI_SERVER_URL = "https://grid.lab"
    User.objects.create_user("ada", email="ada@lab.org")
    mail.outbox = []


def on_packages(minutes: float) -> list[Any]:
    """Mails on packages that are sent so many minutes from now."""
    now = timezone.now() + timedelta(minutes=minutes)
    failures.run()
    workflows.run(now=now)
    notification.run(now=now)
    found = [one for one in mail.outbox if "packages failed" in one.subject or "package failed" in one.subject]
    mail.outbox.clear()
    return found


def failed(text: str) -> Workflow:
    """A workflow of which the packages that read two of the files have failed."""
    add_dataset("lab.raw", 3)
    workflow = begin(text)
    drive(Pilot(failing_on("lab.raw.00000", "lab.raw.00001")))
    return workflow


def test_all_failures_of_a_while_are_one_mail() -> None:
    workflow = failed(MERGE.replace("job merged", "job merged\nrestart any 1"))
    (sent,) = on_packages(2)
    assert (sent.subject, sent.to) == (f"Workflow {workflow.pk}: 2 packages failed", ["ada@lab.org"])
    for piece in (
        f"4 failures of 2 packages of workflow merged ({workflow.pk}): exit 65 (4).",
        "2 of them wait until somebody restarts or drops them.",
        "001/001/001 A: 2 failures, the last: job ",
        "at SITE_A on node, exit 65: The payload ended with exit code 65. It is not restarted by itself.",
        f"https://grid.lab/workflows/{workflow.pk}/",
    ):
        assert piece in sent.body, sent.body
    assert not on_packages(3), "each failure is told once"


def test_after_a_mail_failures_are_gathered_for_a_while() -> None:
    workflow = failed(MERGE)
    assert len(on_packages(2)) == 1
    # A failure that came after the mail: the mail before it is made older.
    Workflow.objects.filter(pk=workflow.pk).update(failures_told=timezone.now() - timedelta(minutes=5))
    JobFailure.objects.update(ended=timezone.now())
    assert not on_packages(5)
    (sent,) = on_packages(20)
    assert "2 packages failed" in sent.subject


def test_failures_of_quiet_packages_are_not_told() -> None:
    failed(QUIET)
    assert not on_packages(2)
    assert not Notification.objects.filter(workflow_id__isnull=False).exists()
