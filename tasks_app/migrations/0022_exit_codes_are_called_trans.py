from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("tasks_app", "0021_owners_of_datasets"),
    ]

    operations = [
        # Retry rules have always called the exit code of the transform so.
        migrations.RunSQL(
            "UPDATE error_fingerprints SET component = 'trans' WHERE component = 'payload'",
            "UPDATE error_fingerprints SET component = 'payload' WHERE component = 'trans'",
        ),
    ]
