"""Workflows: files of dropped packages leave their tasks when their jobs have ended, failures are mailed to owners, and what
is deletable goes when its workflow has ended."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from jedisite.agents.registry import Pass, agent
from jedisite.vocabulary.words import plural
from tasks_app.workflows import failure_mails, file_deletion
from tasks_app.workflows.dropping import remove_canceled, with_canceled_files

LIMIT = 50


@agent("workflows", every="1m", title="Cleans up in workflows and mails failures")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Remove what has come back of the workflows that have something dropped, leave mails on failures of packages, and delete
    files of workflows that have ended."""
    now = now or timezone.now()
    removed = remove_canceled(with_canceled_files(limit))
    mails = sum(failure_mails.write_mail(number, now) for number in failure_mails.due(limit, now))
    deleted = sum(file_deletion.delete_files(number) for number in file_deletion.with_files_to_delete(limit))
    parts = [plural(removed, "file") + " removed" if removed else "", plural(mails, "mail") if mails else ""]
    parts.append(plural(deleted, "dataset") + " deleted" if deleted else "")
    return Pass(removed + mails + deleted, ", ".join(filter(None, parts)))
