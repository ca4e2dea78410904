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

        from brokerage_app import configuring, queue_deleting
        from jedisite.command_line import SET
        from tasks_app import known, site_use, timeouts, usersecrets
        from tasks_app.agents import register

        checks.register(timeouts.check_limits, SET)
        register()
        queue_deleting.register(site_use.held)
        configuring.check_labels_by(lambda: known.Tables().labels)
        post_delete.connect(usersecrets.forget, sender=settings.AUTH_USER_MODEL)
