from django.db import migrations

GIVEN_UP = """
UPDATE jedi_datasets SET nfilestobeused = nfilesused
 WHERE type IN ('input', 'pseudo_input') AND nfilesused > nfilestobeused AND nfilesused <= nfiles
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
