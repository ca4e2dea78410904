"""Data management: the adapter in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasks_app.ddm.base import DataManagement, Maker

if TYPE_CHECKING:
    from tasks_app.models import Task


def data_management() -> DataManagement:
    from tasks_app.ddm.local_storage import catalogue

    return catalogue


def maker_of(task: Task) -> Maker:
    """For whom data management writes when a task does."""
    return Maker(task.user, task.id)
