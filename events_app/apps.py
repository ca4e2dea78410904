from __future__ import annotations

from django.apps import AppConfig

from jedisite.processes import garbage


class EventsConfig(AppConfig):
    name = "events_app"
    verbose_name = "Events"

    def ready(self) -> None:
        from events_app.web import added_places
        from jedisite.agents.registry import REGISTRY

        added_places.register()
        REGISTRY.look_in("events_app.agents")
        # This is the last of the apps: what all of them need has been imported.
        garbage.look_again()
