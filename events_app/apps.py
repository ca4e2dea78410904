from __future__ import annotations

from django.apps import AppConfig

from jedisite.processes import garbage


class EventsConfig(AppConfig):
    name = "events_app"
    verbose_name = "Events"

    def ready(self) -> None:
        from events_app.web import added_places

        added_places.register()
        # This is the last of the apps: what all of them need has been imported.
        garbage.look_again()
