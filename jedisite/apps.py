from __future__ import annotations

import sys

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class JedisiteConfig(AppConfig):
    name = "jedisite"
    verbose_name = "Installation"

    def ready(self) -> None:
        from jedisite import agents, checks, children, housekeeping, wildcards  # noqa: F401 - some register themselves

        if sys.argv[1:2] == ["qcluster"]:
            # The workers of a cluster that is killed would wait for work for ever.
            children.forks_die_with_parent()

        housekeeping.register()
        post_migrate.connect(agents.synchronise_after_migrate, sender=self)
