from django.db import migrations

IN_THEIR_CONTAINERS = """
INSERT INTO catalogue_members (from_cataloguedataset_id, to_cataloguedataset_id)
SELECT DISTINCT b.id, c.id FROM jedi_datasets d
  JOIN catalogue_datasets c ON c.name = d.datasetname AND c.made_by_task = d.jeditaskid
  JOIN catalogue_datasets b ON b.name = rtrim(d.containername, '/') || '/' AND b.owner = c.owner
 WHERE d.type IN ('output', 'log')
    ON CONFLICT DO NOTHING
"""


class Migration(migrations.Migration):
    dependencies = [
        ("tasks_app", "0027_masters_are_used_once"),
    ]

    operations = [
        # Tasks that ran again before retries put them back have made files that their containers do not show.
        migrations.RunSQL(IN_THEIR_CONTAINERS, migrations.RunSQL.noop),
    ]
