from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('brokerage_app', '0009_replica_sizes'),
    ]

    operations = [
        migrations.RunSQL('CREATE SEQUENCE storage_endpoints_number AS integer', 'DROP SEQUENCE storage_endpoints_number'),
        migrations.AddField(
            model_name='storageendpoint',
            name='number',
            field=models.IntegerField(db_default=models.Func(models.Value('storage_endpoints_number'), function='nextval'), editable=False, help_text='by which pilots name it in their reports', unique=True),
        ),
        migrations.RunSQL(
            'ALTER SEQUENCE storage_endpoints_number OWNED BY storage_endpoints.number',
            'ALTER SEQUENCE storage_endpoints_number OWNED BY NONE',
        ),
    ]
