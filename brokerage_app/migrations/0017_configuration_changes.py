from django.db import migrations


class Migration(migrations.Migration):
    """A change of a parameter is seen as changes of the grid are: tasks that wait for a nucleus are looked at again."""

    dependencies = [("brokerage_app", "0016_plurals")]
    operations = [
        migrations.RunSQL(
            "CREATE TRIGGER gdp_config_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON gdp_config"
            " FOR EACH STATEMENT EXECUTE FUNCTION grid_changed('configuration')",
            "DROP TRIGGER gdp_config_changed ON gdp_config",
        ),
    ]
