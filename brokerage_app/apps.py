from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings
from django.db.models.signals import post_delete, post_save


class BrokerageConfig(AppConfig):
    name = "brokerage_app"
    verbose_name = "Brokerage"

    def ready(self) -> None:
        if settings.JEDI_LIGHT:
            return
        from brokerage_app.models import GdpConfig
        from jedisite.agents.registry import REGISTRY
        from jedisite.identity import token_sites

        for signal in (post_save, post_delete):
            signal.connect(_forget_configuration, sender=GdpConfig)
        from brokerage_app.grid import queue_status

        token_sites.check_sites_by(queue_status.no_queue)
        REGISTRY.look_in("brokerage_app.agents")


# Imported when it is called: every command starts without it.


def _forget_configuration(**given: object) -> None:
    from brokerage_app.grid.configuring import forget_after_change

    forget_after_change(**given)
