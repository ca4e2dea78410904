"""Templates of output file names, with the serial number of the next file."""

from __future__ import annotations

from django.db import models

from tasks_app.models.dataset import Dataset
from tasks_app.models.fields import number, text


class OutputTemplate(models.Model):
    id = models.BigAutoField(primary_key=True, db_column="outtempid")
    task_id = models.BigIntegerField(db_column="jeditaskid")
    dataset = models.ForeignKey(Dataset, models.CASCADE, db_column="datasetid", related_name="output_templates")
    file_name_template = models.CharField(max_length=256, db_column="filenametemplate")
    max_serial = number("maxserialnr")
    serial = models.IntegerField(db_column="serialnr", db_default=1, help_text="number of the next file")
    source_name = text("sourcename", 256)
    stream_name = text("streamname", 20)
    out_type = text("outtype", 20)

    class Meta:
        db_table = "jedi_output_template"
        indexes = [
            models.Index(fields=["task_id", "dataset", "id"], name="jedi_output_template_task"),
            models.Index(fields=["file_name_template"], name="jedi_output_template_name"),
        ]

    def __str__(self) -> str:
        return self.file_name_template
