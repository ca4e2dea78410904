from __future__ import annotations

from django.apps import AppConfig


class TasksConfig(AppConfig):
    name = "tasks_app"
    verbose_name = "Tasks"

    def ready(self) -> None:
        from django.conf import settings

        if settings.JEDI_LIGHT:
            return
        from django.core import checks
        from django.db.models.signals import post_delete

        from brokerage_app.grid import configured_names, queue_deleting
        from jedisite.agents.registry import REGISTRY
        from jedisite.management.command_line import SET
        from tasks_app.configured import timeout_limits
        from tasks_app.models import partitioned
        from tasks_app.submission import known_names, user_secrets
        from tasks_app.usage import site_use

        checks.register(timeout_limits.check_limits, SET)
        REGISTRY.look_in("tasks_app.agents")
        partitioned.register()
        queue_deleting.register(site_use.held)
        configured_names.check_labels_by(lambda: known_names.Tables().labels)
        post_delete.connect(user_secrets.forget, sender=settings.AUTH_USER_MODEL)
