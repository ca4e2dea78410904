"""Workflows: files of dropped packages leave their tasks when their jobs have ended, and failures are mailed to owners."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from jedisite.agents.registry import Pass, agent
from jedisite.vocabulary.words import plural
from tasks_app.workflows import failure_mails
from tasks_app.workflows.dropping import remove_canceled, with_canceled_files

LIMIT = 50


@agent("workflows", every="1m", title="Cleans up after dropped packages and mails failures")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Remove what has come back of the workflows that have something dropped, and leave mails on failures of packages."""
    now = now or timezone.now()
    removed = remove_canceled(with_canceled_files(limit))
    mails = sum(failure_mails.write_mail(number, now) for number in failure_mails.due(limit, now))
    parts = [plural(removed, "file") + " removed" if removed else "", plural(mails, "mail") if mails else ""]
    return Pass(removed + mails, ", ".join(filter(None, parts)))
