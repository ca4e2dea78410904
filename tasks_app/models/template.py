"""Templates of output file names, with the serial number of the next file; and what tasks that are not refined yet will make."""

from __future__ import annotations

from django.db import models

from tasks_app.models.dataset import Dataset
from tasks_app.models.fields import number, text
from tasks_app.models.task import Task


class OutputTemplate(models.Model):
    id = models.BigAutoField(primary_key=True, db_column="outtempid")
    task_id = models.BigIntegerField(db_column="jeditaskid")
    dataset = models.ForeignKey(Dataset, models.CASCADE, db_column="datasetid", related_name="output_templates")
    file_name_template = models.CharField(max_length=256, db_column="filenametemplate")
    max_serial = number("maxserialnr", help_text="highest number of a file")
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


class PlannedOutput(models.Model):
    """What a submitted task will make, from the moment it is submitted until it is refined: from then on its datasets and
    templates say so themselves. Others that are submitted meanwhile are checked against it."""

    id = models.BigAutoField(primary_key=True)
    task = models.ForeignKey(Task, models.CASCADE, db_column="jeditaskid", related_name="planned_outputs")
    dataset = models.TextField(help_text="a dataset or container, without the slash of a container")
    file_name_template = models.TextField(db_default="", blank=True, help_text="empty where the item names no files")

    class Meta:
        db_table = "planned_outputs"
        indexes = [
            models.Index(fields=["file_name_template"], name="planned_outputs_files"),
            models.Index(fields=["dataset"], name="planned_outputs_dataset"),
        ]

    def __str__(self) -> str:
        return self.file_name_template or self.dataset
