from django.db import migrations

from jedisite.partition_sql import by_task_hash


class Migration(migrations.Migration):
    """Event ranges spread over partitions by a hash of their task."""

    dependencies = [("events_app", "0001_initial")]
    operations = [
        migrations.RunSQL(
            by_task_hash("jedi_events", "jeditaskid, row_id", 8)
            + "ALTER TABLE jedi_events ADD CONSTRAINT jedi_events_key UNIQUE (jeditaskid, pandaid, fileid, job_processid);",
            migrations.RunSQL.noop,
        ),
    ]
