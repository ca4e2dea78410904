from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class JedisiteConfig(AppConfig):
    name = "jedisite"
    verbose_name = "Installation"

    def ready(self) -> None:
        from jedisite import agents, housekeeping

        housekeeping.register()
        post_migrate.connect(agents.synchronise_after_migrate, sender=self)
