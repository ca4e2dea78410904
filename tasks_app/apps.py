from __future__ import annotations

from django.apps import AppConfig


class TasksConfig(AppConfig):
    name = "tasks_app"
    verbose_name = "Tasks"

    def ready(self) -> None:
        from django.core import checks

        from tasks_app import timeouts
        from tasks_app.agents import register

        checks.register(timeouts.check_limits)
        register()
