from django.db import migrations, models

FUNCTIONS = """
CREATE FUNCTION queue_status_moved(name text, old text, new text, words text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    said jsonb := nullif(current_setting('jedi.queue_status', true), '')::jsonb;
    moment timestamptz := coalesce((said ->> 'at')::timestamptz, clock_timestamp());
BEGIN
    UPDATE queue_status_log SET ended_at = moment WHERE queue = name AND ended_at IS NULL;
    IF new IS NOT NULL THEN
        INSERT INTO queue_status_log (queue, old, new, reason, by, at, until, after)
            VALUES (name, old, new, coalesce(said ->> 'reason', words), coalesce(said ->> 'by', ''), moment,
                    (said ->> 'until')::timestamptz, coalesce(said ->> 'after', ''));
    END IF;
END $$;

CREATE FUNCTION queue_status_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM queue_status_moved(OLD.name, OLD.status, NULL, NULL);
    ELSIF TG_OP = 'INSERT' THEN
        PERFORM queue_status_moved(NEW.name, '', NEW.status, NEW.status_reason);
    ELSE
        PERFORM queue_status_moved(NEW.name, OLD.status, NEW.status, NEW.status_reason);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER queues_status_made AFTER INSERT OR DELETE ON queues
    FOR EACH ROW EXECUTE FUNCTION queue_status_changed();
CREATE TRIGGER queues_status_changed AFTER UPDATE OF status ON queues
    FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION queue_status_changed();

INSERT INTO queue_status_log (queue, old, new, reason, by, at, after)
    SELECT name, '', status, status_reason, '', last_update, '' FROM queues;
"""
NO_FUNCTIONS = """
DROP TRIGGER queues_status_changed ON queues;
DROP TRIGGER queues_status_made ON queues;
DROP FUNCTION queue_status_changed();
DROP FUNCTION queue_status_moved(text, text, text, text);
"""


class Migration(migrations.Migration):
    """Every change of a queue's status is kept, whoever makes it and by whatever way."""

    dependencies = [
        ('brokerage_app', '0012_samples'),
    ]

    operations = [
        migrations.CreateModel(
            name='QueueStatusLog',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('queue', models.CharField(help_text='name; the queue may be gone', max_length=128)),
                ('old', models.CharField(blank=True, default='', help_text='empty: the queue was new', max_length=20)),
                ('new', models.CharField(max_length=20)),
                ('reason', models.TextField(blank=True, default='')),
                ('by', models.CharField(blank=True, default='', help_text='empty: the writer did not say', max_length=128)),
                ('at', models.DateTimeField()),
                ('until', models.DateTimeField(blank=True, help_text='when it is to end; empty: when somebody changes it', null=True)),
                ('after', models.CharField(blank=True, default='', help_text='the status that follows at that time', max_length=20)),
                ('ended_at', models.DateTimeField(blank=True, help_text='empty: it holds now', null=True)),
            ],
            options={
                'verbose_name': 'status of a queue',
                'verbose_name_plural': 'status history of queues',
                'db_table': 'queue_status_log',
                'indexes': [models.Index(fields=['queue', '-id'], name='queue_status_log_by_queue'), models.Index(condition=models.Q(('ended_at__isnull', True), ('until__isnull', False)), fields=['until'], name='queue_status_log_due')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at__isnull', True)), fields=('queue',), name='queue_status_log_one_holds'), models.CheckConstraint(condition=models.Q(('until__isnull', True), models.Q(('after', ''), _negated=True), _connector='OR'), name='queue_status_log_after')],
            },
        ),
        migrations.RunSQL(FUNCTIONS, NO_FUNCTIONS),
    ]
