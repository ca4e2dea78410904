"""Which migrations the database lacks."""

from __future__ import annotations

from django.db import connection
from django.db.migrations.executor import MigrationExecutor


def missing() -> int:
    """How many migrations have not been applied."""
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
