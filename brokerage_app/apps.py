from __future__ import annotations

from django.apps import AppConfig


class BrokerageConfig(AppConfig):
    name = "brokerage_app"
    verbose_name = "Brokerage"
