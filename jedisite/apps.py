from __future__ import annotations

import sys

from django.apps import AppConfig
from django.db.models.signals import post_migrate

AGENTS = ("qcluster", "cluster", "ticker", "agent")
"""Commands that run agents, or look after those that do."""
CHECKS_ADMIN = ("check", "makemigrations")
"""Commands that check all there is: the admin's pages too, which otherwise are imported with the addresses of the site."""


class JedisiteConfig(AppConfig):
    name = "jedisite"
    verbose_name = "Installation"

    def ready(self) -> None:
        from django.conf import settings
        from django.contrib import admin

        if settings.JEDI_LIGHT:
            return
        from jedisite.agents import passes
        from jedisite.agents.registry import REGISTRY
        from jedisite.database import database_limits, partitions, wildcards  # noqa: F401 - the lookups register themselves
        from jedisite.processes import children, deploy_checks  # noqa: F401 - the checks register themselves

        command = (sys.argv[1:2] or [""])[0]
        database_limits.use("agents" if command in AGENTS else "commands", settings.JEDI_DATABASE_LIMITS)
        if command == "qcluster":
            # The workers of a cluster that is killed would wait for work for ever.
            children.forks_die_with_parent()
            REGISTRY.at_once = True
        if command in CHECKS_ADMIN:
            admin.autodiscover()

        REGISTRY.look_in("jedisite.agents.housekeeping")
        partitions.MONTHLY.append(partitions.Monthly("agent_passes", keep_months=3))
        post_migrate.connect(passes.synchronise_after_migrate, sender=self)
