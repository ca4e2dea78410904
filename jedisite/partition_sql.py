"""SQL for migrations that turn a plain, still empty table into a partitioned one. Django cannot say this.

Landed migrations call these functions: their output must not change.
"""

from __future__ import annotations

_REPARTITION = """
DO $do$
DECLARE
    definitions text[];
    definition text;
BEGIN
    SELECT coalesce(array_agg(pg_get_indexdef(i.indexrelid)), '{{}}') INTO definitions
      FROM pg_index i WHERE i.indrelid = '{table}'::regclass
       AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conindid = i.indexrelid);
    ALTER TABLE {table} RENAME TO {table}_plain;
    CREATE TABLE {table} (LIKE {table}_plain INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED INCLUDING IDENTITY)
        PARTITION BY {by};
    DROP TABLE {table}_plain;
    ALTER TABLE {table} ADD PRIMARY KEY ({primary_key});
    FOREACH definition IN ARRAY definitions LOOP
        EXECUTE regexp_replace(definition, ' ON (ONLY )?(\\S+\\.)?{table}(_plain)? ', ' ON {table} ');
    END LOOP;
END
$do$;
"""


def repartition(table: str, by: str, primary_key: str) -> str:
    """Replace an empty plain table by a partitioned one with the same columns, checks and indexes."""
    return _REPARTITION.format(table=table, by=by, primary_key=primary_key)


def monthly(table: str, column: str, key: str) -> str:
    """Partition by month of `column`, with a default partition so that no row is ever refused."""
    return (
        repartition(table, f"RANGE ({column})", f"{key}, {column}")
        + f"CREATE TABLE {table}_default PARTITION OF {table} DEFAULT;"
    )


def by_task(table: str, primary_key: str) -> str:
    """Partition by ranges of the task id, with a default partition."""
    return (
        repartition(table, "RANGE (jeditaskid)", primary_key)
        + f"CREATE TABLE {table}_default PARTITION OF {table} DEFAULT;"
    )


def by_task_hash(table: str, primary_key: str, parts: int) -> str:
    """Partition by a hash of the task id into `parts` tables that leave room for new versions of their rows."""
    statements = [repartition(table, "HASH (jeditaskid)", primary_key)]
    for part in range(parts):
        statements.append(
            f"CREATE TABLE {table}_h{part} PARTITION OF {table} FOR VALUES WITH (MODULUS {parts}, REMAINDER {part}) "
            "WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);"
        )
    return "\n".join(statements)
