"""Scopes of datasets, by the grid's rule. Pure."""

from __future__ import annotations


def scope_of(dataset: str) -> str:
    """The scope of a dataset name: before a colon, a user's or group's first two fields, or the first field."""
    before, colon, _ = dataset.partition(":")
    if colon:
        return before
    fields = before.rstrip("/").split(".")
    if fields[0] in ("user", "group") and len(fields) > 1:
        return ".".join(fields[:2])[:30]
    return fields[0][:30] or "user"
