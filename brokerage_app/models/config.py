"""The configuration that all agents share: rows by application, component, key and VO."""

from __future__ import annotations

from django.db import models


class GdpConfig(models.Model):
    """One value. A row without VO holds for all; `value_json` is used by the type json only."""

    id = models.AutoField(primary_key=True)
    app = models.CharField(max_length=64)
    component = models.CharField(max_length=64)
    key = models.CharField(max_length=128)
    value = models.CharField(max_length=256, null=True, blank=True)
    type = models.CharField(max_length=64)
    vo = models.CharField(max_length=16, null=True, blank=True)
    description = models.CharField(max_length=256, null=True, blank=True, db_column="descr")
    value_json = models.JSONField(null=True, blank=True)

    class Meta:
        db_table = "gdp_config"
        verbose_name = "configuration row"
        verbose_name_plural = "configuration"
        constraints = [
            models.UniqueConstraint(
                fields=["app", "component", "key", "vo"], name="gdp_config_name", nulls_distinct=False
            )
        ]

    def __str__(self) -> str:
        return f"{self.component}.{self.key}{f' of {self.vo}' if self.vo else ''}"
