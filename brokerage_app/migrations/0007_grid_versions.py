from django.db import migrations

PARTS = {
    "static": (
        "queues", "storage_endpoints", "panda_ddm_relation", "sites", "resource_types", "sw_tags",
        "worker_node_gpu_summary", "worker_node_cpu_summary",
    ),
    "links": ("network_matrix_kv",),
    "activity": ("queue_activity", "user_counts"),
}  # fmt: skip
FUNCTION = """
CREATE FUNCTION grid_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO grid_versions AS v (part, token, at) VALUES (TG_ARGV[0], gen_random_uuid(), clock_timestamp())
        ON CONFLICT (part) DO UPDATE SET token = excluded.token, at = excluded.at;
    RETURN NULL;
END $$;
"""


def triggers() -> str:
    return "".join(
        f"CREATE TRIGGER {table}_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON {table}"
        f" FOR EACH STATEMENT EXECUTE FUNCTION grid_changed('{part}');\n"
        for part, tables in PARTS.items()
        for table in tables
    )


def no_triggers() -> str:
    return "".join(f"DROP TRIGGER {table}_changed ON {table};\n" for tables in PARTS.values() for table in tables)


class Migration(migrations.Migration):
    """Each change of a table that describes the grid gives its part a new token, so that processes need not read it anew."""

    dependencies = [("brokerage_app", "0006_grid")]
    operations = [
        migrations.RunSQL(FUNCTION + triggers(), no_triggers() + "DROP FUNCTION grid_changed();"),
    ]
