from django.db import migrations

USED_ONCE = """
UPDATE jedi_datasets d
   SET attributes = array_to_string(
           ARRAY(SELECT word FROM unnest(string_to_array(d.attributes, ',')) WITH ORDINALITY AS w(word, place)
                  WHERE btrim(word) NOT IN ('nosplit', 'repeat', 'ru') ORDER BY place), ',')
 WHERE d.masterid IS NULL AND d.type IN ('input', 'pseudo_input') AND d.attributes ~ '(^|,) *(nosplit|repeat|ru) *(,|$)'
"""


class Migration(migrations.Migration):
    dependencies = [
        ("tasks_app", "0026_files_of_a_job_in_order"),
    ]

    operations = [
        # Tasks that were refined before masters lost these words would use the files of their masters without end.
        migrations.RunSQL(USED_ONCE, migrations.RunSQL.noop),
    ]
