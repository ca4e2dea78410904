"""Everything that people, sites and tables can give a value to, from the tables of the code itself."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from django.apps import apps

from brokerage_app.cases.analysis_settings import AnalysisFacts
from brokerage_app.policy.parameters import PARAMETERS as CONFIGURATION
from brokerage_app.policy.parameters import parse_key
from brokerage_app.vocabulary.needs import InputData, Replica, TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from tasks_app.domain.retry_rules import Action, RetryParameters
from tasks_app.models import RetryRule
from tasks_app.params import command_parameters, dataset_attributes, job_groups
from tasks_app.params.items import ITEM_KEYS
from tasks_app.params.keys import DS_FOR_KEY, KEYS
from tasks_app.params.specs import SPEC_KEYS
from tasks_app.params.split_codes import CODES

TABLES: Final = (
    "jedi_tasks",
    "jedi_taskparams",
    "jedi_jobparams_template",
    "jedi_datasets",
    "jedi_dataset_contents",
    "jedi_output_template",
    "jedi_work_queue",
    "jedi_events",
    "jedi_job_retry_history",
    "jedi_process_lock",
)
"""The ten tables of the JEDI documents."""


READ_AS: Final = {"type": "is_template", "files": "named_files"}
"""Keys of items that are read by another name."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """One thing that must have an effect: its key in the tables of effects, and the words by which sources mention it."""

    key: str
    words: frozenset[str]

    def is_among(self, said: frozenset[str]) -> bool:
        """Whether one of these words means it. Keys of the configuration may have the name of a share or the like behind."""
        if said & self.words:
            return True
        kind, _, name = self.key.partition(":")
        if kind == "column":  # the names of PanDA's clients have capitals
            return name.partition(".")[2] in {word.lower() for word in said}
        component, _, key = name.partition(".")
        return kind == "configuration" and any(
            found[0].key == key for word in said if word.startswith(key) and (found := parse_key(component, word))
        )


@cache
def entries() -> dict[str, Entry]:
    """All of them by key, such as `task:nFilesPerJob`, `rule:NF`, `column:jedi_tasks.goal`."""
    return {entry.key: entry for entry in _all()}


def _entry(kind: str, name: str, *words: str | None) -> Entry:
    return Entry(f"{kind}:{name}", frozenset(word for word in words if word))


def _all() -> Iterator[Entry]:
    for key in KEYS.values():
        yield _entry("task", key.name, key.name, _snake(key.name), key.code)
    yield _entry("task", DS_FOR_KEY.name, "dsForIN", "DS_FOR", "stream_of_ds_for")
    yield from (
        _entry("item", name, name, dataset_attributes.TOKENS.get(name), READ_AS.get(name)) for name in ITEM_KEYS
    )
    yield from (_entry("attribute", name, name) for name in dataset_attributes.WORDS)
    for within, tags in job_groups.INSIDE.items():
        yield from (_entry("element", f"{within}.{tag}", tag) for tag in tags)
    for tag, names in job_groups.ATTRIBUTES.items():
        yield from (_entry("element", f"{tag}@{name}", name, _snake(name)) for name in names)
    for spec, keys in SPEC_KEYS.items():
        yield from (_entry(spec, key.name, key.name) for key in keys)
    reached = {key.code for key in KEYS.values()}
    yield from (_entry("rule", code, code, _snake(one.meaning)) for code, one in CODES.items() if code not in reached)
    for kind, cls in (("needs", TaskNeeds), ("input", InputData), ("replica", Replica), ("facts", AnalysisFacts)):
        yield from (_entry(kind, one.name, one.name) for one in dataclasses.fields(cls))
    yield from (_entry("queue", one.name, one.name) for one in dataclasses.fields(SiteView))
    for one in CONFIGURATION:
        yield _entry("configuration", f"{one.component}.{one.key}", one.key, one.key.lower())
    yield from (_entry("retry rule", action.value, action.value, action.name) for action in Action)
    yield from (_entry("retry rule", one.name, one.name) for one in dataclasses.fields(RetryParameters))
    yield from (_entry("retry rule", one.name, one.name, one.attname) for one in RetryRule._meta.fields)
    for command, keys in command_parameters.PARAMETERS.items():
        yield from (_entry("command", f"{command.value}.{key.name}", key.name) for key in keys)
    yield from _columns()


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])[A-Z]+", lambda found: "_" + found[0].lower(), name)


def _columns() -> Iterator[Entry]:
    models = {model._meta.db_table: model for model in apps.get_models()}
    for table in TABLES:
        for field in models[table]._meta.local_concrete_fields:
            yield _entry("column", f"{table}.{field.column}", field.column, field.name, field.attname)
