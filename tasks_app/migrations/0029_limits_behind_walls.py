from django.db import migrations

RULES = [
    # start of the text, action, parameters, why
    (r"The payload used \d+ MB, its limit is ", "increase_memory", None, "the job used more memory than it asked for"),
    (r"The payload ran for ", "increase_cputime", None, "the payload ran longer than the job may"),
    (r"The work folder (held|cannot be measured)", "reduce_input", "steps=1/3/5&excluded_rules=NE,NF",
     "the work folder grew larger than it may"),
]  # fmt: skip


def insert(apps, schema_editor):
    """What rules on our own pilot's codes 1235, 1213 and 1104 do, for jobs that end so behind the walls of PanDA's pilot: that
    says of each only that its payload ended with exit code 1."""
    rule = apps.get_model("tasks_app", "RetryRule")
    rule.objects.bulk_create(
        rule(error_source="trans", error_code=1, pattern=pattern, action=action, parameters=parameters, description=why)
        for pattern, action, parameters, why in RULES
    )


class Migration(migrations.Migration):
    dependencies = [
        ("tasks_app", "0028_outputs_are_in_their_containers"),
    ]

    operations = [
        migrations.RunPython(insert, migrations.RunPython.noop),
    ]
