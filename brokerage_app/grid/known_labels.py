"""The labels that tasks can have, as far as an app above can tell. Every command starts with this; it imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable, Collection

ASKED: list[Callable[[], Collection[str]]] = []


def check_labels_by(labels: Callable[[], Collection[str]]) -> None:
    """From now on values for a label are taken for these only: tasks of others are refused, so that nobody would read them."""
    ASKED.append(labels)
