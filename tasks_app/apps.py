from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from django.apps import AppConfig
from django.core.checks import CheckMessage

from brokerage_app.grid.queue_deleting import Held


class TasksConfig(AppConfig):
    name = "tasks_app"
    verbose_name = "Tasks"

    def ready(self) -> None:
        from django.conf import settings

        if settings.JEDI_LIGHT:
            return
        from django.core import checks
        from django.db.models.signals import post_delete

        from brokerage_app.grid import known_labels, queue_deleting
        from jedisite.agents.registry import REGISTRY
        from jedisite.management.command_line import SET
        from tasks_app.models import partitioned

        checks.register(_check_limits, SET)
        REGISTRY.look_in("tasks_app.agents")
        partitioned.register()
        queue_deleting.register(_held)
        known_labels.check_labels_by(_labels)
        post_delete.connect(_forget_secrets, sender=settings.AUTH_USER_MODEL)


# What follows is imported when it is called: every command starts without it.


def _check_limits(**_: object) -> list[CheckMessage]:
    from django.conf import settings

    if not settings.JEDI_LIMITS:
        return []
    from tasks_app.configured import timeout_limits

    return [*timeout_limits.check_limits()]


def _held(queues: Sequence[str]) -> Mapping[str, Held]:
    from tasks_app.usage import site_use

    return site_use.held(queues)


def _labels() -> Collection[str]:
    from tasks_app.submission import known_names

    return known_names.Tables().labels


def _forget_secrets(**given: object) -> None:
    from tasks_app.submission import user_secrets

    user_secrets.forget(**given)  # type: ignore[arg-type]
