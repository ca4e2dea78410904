from django.db import migrations

# Agents lock datasets by ascending number, which an UPDATE of many rows does not. Masters alone, as in the invariant that it
# serves (`scouts_have_their_share`).
GIVEN_UP = """
WITH wrong AS (
    SELECT datasetid FROM jedi_datasets
     WHERE type IN ('input', 'pseudo_input') AND masterid IS NULL AND nfilesused > nfilestobeused AND nfilesused <= nfiles
     ORDER BY datasetid FOR UPDATE)
UPDATE jedi_datasets d SET nfilestobeused = d.nfilesused FROM wrong w WHERE d.datasetid = w.datasetid
"""


class Migration(migrations.Migration):
    dependencies = [
        ("tasks_app", "0031_sandboxes_that_are_here"),
    ]

    operations = [
        # Tasks that were finished while they scouted have given up files that were not released: lost outputs of theirs
        # could not be made again, since the scouts were judged first, with what was given up as failed.
        migrations.RunSQL(GIVEN_UP, migrations.RunSQL.noop),
    ]
