"""The names that scripts for Ganga use: `from tasks_app.gpi.ganga import *` takes the place of Ganga's own import line."""

from __future__ import annotations

from tasks_app.gpi.ganga_errors import (
    GangaAttributeError,
    GangaException,
    GangaTypeError,
    JobError,
    NotSupported,
    RegistryKeyError,
    SplitterError,
)
from tasks_app.gpi.ganga_job import Job
from tasks_app.gpi.ganga_splitters import (
    ArgSplitter,
    GangaDatasetSplitter,
    GaussSplitter,
    GenericSplitter,
    ND280SplitNbInputFiles,
    ND280SplitNbJobs,
    ND280SplitOneInputFile,
    SeedSplitter,
    SplitByFiles,
)
from tasks_app.gpi.jedi_backend import Jedi
from tasks_app.gpi.job_parts import (
    CatalogueDataset,
    Executable,
    File,
    GangaDataset,
    LocalDataset,
    LocalFile,
    PythonFunction,
)
from tasks_app.gpi.job_registry import JobRegistry, jobs
from tasks_app.gpi.job_registry import run_monitoring as runMonitoring
from tasks_app.gpi.local_backend import Local
from tasks_app.gpi.postprocessing import CustomMerger, TextMerger

__all__ = [
    "ArgSplitter",
    "CatalogueDataset",
    "CustomMerger",
    "Executable",
    "File",
    "GangaAttributeError",
    "GangaDataset",
    "GangaDatasetSplitter",
    "GangaException",
    "GangaTypeError",
    "GaussSplitter",
    "GenericSplitter",
    "Jedi",
    "Job",
    "JobError",
    "JobRegistry",
    "Local",
    "LocalDataset",
    "LocalFile",
    "ND280SplitNbInputFiles",
    "ND280SplitNbJobs",
    "ND280SplitOneInputFile",
    "NotSupported",
    "PythonFunction",
    "RegistryKeyError",
    "SeedSplitter",
    "SplitByFiles",
    "SplitterError",
    "TextMerger",
    "jobs",
    "runMonitoring",
]
