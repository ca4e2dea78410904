"""Mails to owners: whether one goes out, to whom, and what it says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.mail import EmailMultiAlternatives
from django.core.validators import validate_email
from django.db.models import Count, Sum
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from tasks_app.domain.final import MOST_ERRORS
from tasks_app.domain.states import TaskStatus
from tasks_app.explaining.rules.gates import RUNS_AGAIN
from tasks_app.failures.error_queries import errors_of
from tasks_app.generation.wants import gone_sites
from tasks_app.messaging.rules.mail_summary import LONGEST_COMMAND_LINE, SHOWN_SITES, Ended, Output, error_line
from tasks_app.models import Dataset, Job, JobArchive, Notification, Task, TaskParams, TaskStatusLog
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.outcomes.books import is_production
from tasks_app.params.clientwords import is_from_client
from tasks_app.params.splitrule import SplitRule


class NoMailError(Exception):
    """No mail goes out about this; the sentence says why."""


def address_for(notification: Notification) -> str:
    """Where the mail goes. Raises NoMailError."""
    task = Task.objects.filter(pk=notification.task_id).only("user", "task_type", "prod_source_label").first()
    if task is None:
        raise NoMailError("the task no longer exists")
    wanted = _params(task.id).get("noEmail")
    if wanted:
        raise NoMailError("the task asked for no mail (noEmail)")
    if wanted is None and is_production(task):
        raise NoMailError("it is a production task, whose owners get mail only with noEmail: false")
    if not settings.JEDI_EMAIL_URL:
        raise NoMailError("no mail server is configured (JEDI_EMAIL_URL)")
    user = User.objects.filter(username=task.user).only("email", "is_active").first()
    if user is None or not user.is_active:
        raise NoMailError(f"{task.user} has no account here")
    if not user.email:
        raise NoMailError(f"the account of {task.user} has no address")
    try:
        validate_email(user.email)
    except ValidationError as exc:
        raise NoMailError(f"the address of {task.user} is not valid") from exc
    return str(user.email)


def compose(notification: Notification, recipient: str) -> EmailMultiAlternatives:
    """The mail, with a plain and an HTML part. Its id is the same however often it is made."""
    if notification.workflow_id is not None:
        return _on_workflow(notification, recipient)
    facts = facts_of(notification)
    context = {"t": facts, "links": _links(facts), "base": settings.JEDI_SERVER_URL}
    mail = EmailMultiAlternatives(
        subject=facts.subject,
        body=render_to_string("tasks_app/mail/task.txt", context),
        to=[recipient],
        headers={
            "Message-ID": message_id(notification),
            "Auto-Submitted": "auto-generated",
            "X-JEDI-Task": str(notification.task_id),
        },
    )
    mail.attach_alternative(render_to_string("tasks_app/mail/task.html", context), "text/html")
    return mail


def _on_workflow(notification: Notification, recipient: str) -> EmailMultiAlternatives:
    """The mail on packages of a workflow that have failed, which says what it said when they did."""
    number = notification.workflow_id
    base = settings.JEDI_SERVER_URL
    page = f"{base}{reverse('dashboard:workflow', args=[number])}" if base else ""
    return EmailMultiAlternatives(
        subject=f"Workflow {number}: {notification.status}",
        body=render_to_string("tasks_app/mail/workflow.txt", {"text": notification.reason, "page": page}),
        to=[recipient],
        headers={
            "Message-ID": message_id(notification),
            "Auto-Submitted": "auto-generated",
            "X-JEDI-Workflow": str(number),
        },
    )


ALL_FILES_SAID: Final = (" input files were processed", " input file was processed")


def message_id(notification: Notification) -> str:
    domain = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2].strip("> ") or "localhost"
    return f"<jedi.{notification.task_id}.{notification.id}@{domain}>"


def facts_of(notification: Notification) -> Ended:
    """What the mail tells of a task, as its books say now."""
    task = Task.objects.get(pk=notification.task_id)
    sums = Dataset.objects.filter(task=task, type__in=INPUT_TYPES, master_id=None).aggregate(
        files=Sum("files"), finished=Sum("files_finished"), failed=Sum("files_failed")
    )
    outputs = Dataset.objects.filter(task=task, type__in=("output", "log"), files_finished__gt=0).order_by(
        "-type", "id"
    )
    params = _params(task.id)
    from_client = is_from_client(params)
    return Ended(
        task_id=task.id,
        name=task.name or "",
        status=notification.status,
        # The number of files stands in the mail anyway.
        reason="" if notification.reason.endswith(ALL_FILES_SAID) else notification.reason,
        what=" ".join(part for part in (task.trans_path, task.trans_uses, task.processing_type) if part),
        attempt=task.attempt or 0,
        submitted=task.creation_date,
        started=task.start_time,
        ended=task.end_time,
        files=sums["files"] or 0,
        finished=sums["finished"] or 0,
        failed=sums["failed"] or 0,
        jobs=_counted(task.id, "status"),
        sites=dict(list(_counted(task.id, "site").items())[:SHOWN_SITES]),
        errors=tuple(error_line(*row, from_client=from_client) for row in errors_of(task.id)[:MOST_ERRORS]),
        outputs=tuple(Output(d.name, d.files_finished, d.events_used if d.type == "output" else None) for d in outputs),
        sites_gone=notification.status in RUNS_AGAIN and bool(gone_sites(task, timezone.now())),
        command_line=str(params.get("cliParams") or "")[:LONGEST_COMMAND_LINE],
        stopped=_was_stopped(task),
        never_finished=SplitRule.parse(task.split_rule).flag("DF"),
        from_client=from_client,
    )


def _was_stopped(task: Task) -> bool:
    """Whether its present attempt was told to finish."""
    log = TaskStatusLog.objects.filter(task_id=task.id, attempt=task.attempt)
    return log.filter(status=TaskStatus.FINISHING).exists()


def _counted(task_id: int, field: str) -> dict[str, int]:
    """Jobs of a task by a column, the archived ones too; the most frequent value first."""
    found: dict[str, int] = {}
    for model in (Job, JobArchive):
        rows: Any = model._default_manager.filter(task_id=task_id).values_list(field).annotate(n=Count("id")).order_by()
        for value, n in rows:
            found[value or "no site"] = found.get(value or "no site", 0) + n
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def _params(task_id: int) -> Mapping[str, Any]:
    return TaskParams.objects.filter(pk=task_id).values_list("params", flat=True).first() or {}


def _links(facts: Ended) -> dict[str, str]:
    """Addresses of pages; none when the site does not know its own address."""
    base = settings.JEDI_SERVER_URL
    if not base:
        return {}
    jobs = reverse("dashboard:jobs")
    return {
        "task": f"{base}{reverse('dashboard:task', args=[facts.task_id])}",
        "jobs": f"{base}{jobs}?task={facts.task_id}",
        "failed": f"{base}{jobs}?task={facts.task_id}&status=failed",
        "commands": f"{base}{reverse('api-v2:task-commands', args=[facts.task_id])}",
    }
