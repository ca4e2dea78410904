"""What the grid did over time: a row every five minutes for the whole, each site, each share, and each busy pair of them."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Sample(models.Model):
    """Jobs of a site and share at one moment, and what ended in the interval before it.

    "" stands for all: `site=""` and `share=""` is the whole grid. Numbers of the moment are empty when nobody looked then.
    """

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(help_text="end of the interval of five minutes")
    site = models.CharField(max_length=128, blank=True, default="", help_text="queue; empty is all")
    share = models.CharField(max_length=32, blank=True, default="", db_column="gshare", help_text="empty is all")
    running_jobs = models.IntegerField(null=True, blank=True)
    running_cores = models.IntegerField(null=True, blank=True)
    running_hs = models.FloatField(null=True, blank=True, help_text="HS23 of the cores of running jobs")
    queued_jobs = models.IntegerField(null=True, blank=True)
    queued_hs = models.FloatField(null=True, blank=True, help_text="HS23 of the cores that queued jobs request")
    idle_tasks = models.IntegerField(
        null=True, blank=True, help_text="open tasks without any open job; of the whole grid only"
    )
    finished = models.IntegerField(default=0, help_text="finished jobs in the interval")
    failed = models.IntegerField(default=0, help_text="failed jobs in the interval")
    wasted_core_s = models.BigIntegerField(default=0, help_text="walltime times cores of the failed jobs, in seconds")

    class Meta:
        db_table = "samples"
        constraints = [models.UniqueConstraint(fields=["site", "share", "at"], name="samples_once")]
        # Besides one series, which the constraint's index serves: all sites, all shares, or all pairs of some hours.
        indexes = [
            models.Index(fields=["at"], condition=~Q(site="") & Q(share=""), name="samples_sites"),
            models.Index(fields=["at"], condition=Q(site="") & ~Q(share=""), name="samples_shares"),
            models.Index(fields=["at"], condition=~Q(site="") & ~Q(share=""), name="samples_pairs"),
        ]

    def __str__(self) -> str:
        return f"{self.site or 'all sites'}, {self.share or 'all shares'}, {self.at:%Y-%m-%d %H:%M}"
