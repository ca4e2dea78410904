"""Views of lists that people keep: filters, columns and order under a name."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

LONGEST_QUERY = 2000


class SavedView(models.Model):
    """The part of a list's address behind the question mark, under a name. The address is all there is to a view."""

    id = models.BigAutoField(primary_key=True)
    owner = models.CharField(max_length=150)
    page = models.CharField(max_length=32, help_text="the list, such as tasks")
    name = models.CharField(max_length=64)
    query = models.CharField(max_length=LONGEST_QUERY, blank=True, default="")
    shared = models.BooleanField(default=False, help_text="visible to everybody")
    pinned = models.BooleanField(default=False, help_text="shown on the owner's overview")
    is_usual = models.BooleanField(default=False, help_text="the owner's default view of the page")
    created = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "saved_views"
        constraints = [
            models.UniqueConstraint(fields=["owner", "page", "name"], name="saved_views_name"),
            models.UniqueConstraint(fields=["owner", "page"], condition=Q(is_usual=True), name="saved_views_one_usual"),
        ]
        indexes = [models.Index(fields=["page"], condition=Q(shared=True), name="saved_views_shared")]

    def __str__(self) -> str:
        return self.name


class TasksSeen(models.Model):
    """Until when a user has seen which of the own tasks ended: the page My tasks shows those that ended later."""

    user = models.CharField(max_length=150, primary_key=True)
    at = models.DateTimeField()

    class Meta:
        db_table = "tasks_seen"
        verbose_name = "ended tasks seen"
        verbose_name_plural = "ended tasks seen"

    def __str__(self) -> str:
        return self.user
