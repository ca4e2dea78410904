"""The datasets and containers that a task reads and makes, as its parameters name them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tasks_app.domain.scopes import CONTAINER_MARK
from tasks_app.params.faults import join_path
from tasks_app.params.items import PREPROCESSED
from tasks_app.params.keys import stream_of_ds_for
from tasks_app.params.kinds import names_of
from tasks_app.params.schema import TaskParams


class Made(NamedTuple):
    """A name that is to be made, and the field that says so."""

    field: str
    name: str

    @property
    def is_known(self) -> bool:
        """Whether it is a name already, and not what a preprocessing step is to find."""
        return PREPROCESSED.search(self.name) is None

    @property
    def rows(self) -> tuple[str, str]:
        """The dataset, and the container of that name: each takes the place of the other where it is read."""
        bare = self.name.rstrip(CONTAINER_MARK)
        return bare, bare + CONTAINER_MARK


def read_by(params: TaskParams) -> Iterator[tuple[str, str]]:
    """Inputs: the field and the name of each dataset and container."""
    for item in params.items:
        if item.is_template and item.param_type == "input":
            for name in item.datasets:
                yield join_path(item.where, "dataset"), name
    for stream, names in params.datasets_for.items():
        for name in names:
            yield f"dsFor{stream}", name


def renamed(raw: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """A checked dictionary, or changes of one, in which inputs of these names have others."""

    def of(value: Any) -> Any:
        return ",".join(names.get(name, name) for name in names_of(value)) if value else value

    found = {key: of(value) if stream_of_ds_for(key) is not None else value for key, value in raw.items()}
    if items := raw.get("jobParameters"):
        found["jobParameters"] = [item | {"dataset": of(item["dataset"])} if _reads(item) else item for item in items]
    return found


def _reads(item: Mapping[str, Any]) -> bool:
    return item.get("type") == "template" and item.get("param_type") == "input"


def made_by(params: TaskParams) -> Iterator[Made]:
    """Outputs and logs with the containers that they go into. All else that a task makes has names of the site's own."""
    items = [item for item in params.items if item.is_template and item.param_type in ("output", "log")]
    for item in (*items, *params.logs, *params.merge_logs):
        for name in item.datasets:
            yield Made(join_path(item.where, "dataset"), name)
        container = item.text("container")
        if container:
            yield Made(join_path(item.where, "container"), container)
