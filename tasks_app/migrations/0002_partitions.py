from django.db import migrations

from jedisite.partition_sql import by_task, monthly


class Migration(migrations.Migration):
    """What Django cannot say: sequences of ids, partitions, and how full the pages of hot tables are."""

    dependencies = [("tasks_app", "0001_initial")]
    operations = [
        migrations.RunSQL(
            # Real clients take numbers below ten million for something else than task ids.
            "CREATE SEQUENCE jedi_tasks_id_seq START 10000000; CREATE SEQUENCE jobs_pandaid_seq CACHE 1;",
            "DROP SEQUENCE jedi_tasks_id_seq; DROP SEQUENCE jobs_pandaid_seq;",
        ),
        migrations.RunSQL(by_task("jedi_dataset_contents", "jeditaskid, datasetid, fileid"), migrations.RunSQL.noop),
        migrations.RunSQL(monthly("tasks_statuslog", "modificationtime", "id"), migrations.RunSQL.noop),
        migrations.RunSQL(monthly("jobs_statuslog", "modificationtime", "id"), migrations.RunSQL.noop),
        migrations.RunSQL(monthly("jedi_job_retry_history", "ins_utc_tstamp", "id"), migrations.RunSQL.noop),
        migrations.RunSQL(monthly("jobs_archive", "modificationtime", "pandaid"), migrations.RunSQL.noop),
        migrations.RunSQL(
            """
            ALTER TABLE jobs SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
            ALTER TABLE jedi_tasks SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
            ALTER TABLE jedi_datasets SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
            ALTER TABLE job_output_report SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
            ALTER TABLE file_retries SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
            """,
            migrations.RunSQL.noop,
        ),
    ]
