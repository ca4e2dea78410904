"""Data management: the adapter in use."""

from __future__ import annotations

from tasks_app.ddm.base import DataManagement


def data_management() -> DataManagement:
    from tasks_app.ddm.local import catalogue

    return catalogue
