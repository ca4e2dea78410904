from django.db import migrations

from jedisite.partition_sql import monthly


class Migration(migrations.Migration):
    """Passes of agents by month, and the cache table that django-q2 writes its state to."""

    dependencies = [("jedisite", "0001_initial")]
    operations = [
        migrations.RunSQL(monthly("agent_passes", "started_at", "id"), migrations.RunSQL.noop),
        migrations.RunSQL(
            "CREATE UNLOGGED TABLE django_cache (cache_key varchar(255) PRIMARY KEY, value text NOT NULL, expires timestamptz NOT NULL);"
            "CREATE INDEX django_cache_expires ON django_cache (expires);",
            "DROP TABLE django_cache;",
        ),
    ]
