from __future__ import annotations

from django.apps import AppConfig


class EventsConfig(AppConfig):
    name = "events_app"
    verbose_name = "Events"
