"""Keys of the configuration that name what is not there: a label, a work queue, a share, a resource type, a storage.

Nobody reads such a row, so that it is refused when it is set; a row that was set before says so on the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from brokerage_app.grid import known_labels, repository
from brokerage_app.models import GlobalShare, StorageEndpoint, WorkQueue
from brokerage_app.policy.broker_parameters import THROTTLERS
from brokerage_app.policy.configuration import Configuration, Row
from brokerage_app.policy.parameters import parse_key
from brokerage_app.policy.throttle import CORE_CLASSES
from brokerage_app.policy.workqueues import partitions_of
from jedisite.vocabulary.words import rather


def faults(found: Configuration) -> Iterator[tuple[Row, str]]:
    """Rows that count as not set, and rows for what is not there, each with the sentence why."""
    bad = dict(found.faults())
    yield from bad.items()
    names = Names()
    for row in found.rows:
        if row not in bad and (fault := names.fault(row.component, row.key)):
            yield row, fault


class Names:
    """What the suffixes of keys may name now, read when the first key asks for it."""

    def fault(self, component: str, key: str) -> str:
        """The sentence on a key whose suffix names what is not there; "" for all others."""
        parsed = parse_key(component, key)
        if parsed is None or not parsed[1]:
            return ""
        (parameter, suffix), sets = parsed, f"for which {key} of {component} would be"
        if parameter.per[:1] == ("label",):
            label = max((label for label in self.labels if f"{suffix}_".startswith(f"{label}_")), key=len, default="")
            if known_labels.ASKED and not label:
                label = suffix if len(parameter.per) == 1 else suffix.partition("_")[0]
                return rather(f"no task can have the label {label}, {sets}", label, self.labels)
            queue = suffix.removeprefix(f"{label}_") if parameter.per[1:] == ("queue",) else ""
            return self._part_of_partition(key, queue, [queue])
        if parameter.per in (("link",), ("endpoint",)):
            return self._not_served(parameter.per[0], suffix, sets)
        if parameter.per[:1] != ("queue",):
            return ""
        ends = ["", *(f"_{kind}" for kind in self.kinds)] if component in THROTTLERS else [""]
        known = [f"{name}{end}" for name in self.units for end in ends]
        if suffix in known:
            return ""
        subs = [suffix.removesuffix(end) for end in ends if suffix.endswith(end)]
        return self._part_of_partition(key, suffix, subs) or rather(
            f"there is no work queue or share {suffix}, {sets}", suffix, known
        )

    def _not_served(self, kind: str, suffix: str, sets: str) -> str:
        """The sentence on a link or a tape between, or from, which the mover copies nothing."""
        if kind == "endpoint":
            tapes = {name for name, is_tape in self.storages.items() if is_tape}
            says = f"{suffix} is no tape of this machine, {sets}"
            return "" if suffix in tapes else rather(says, suffix, tapes)
        source, colon, destination = suffix.partition(":")
        if not colon:
            return f"a link is source:destination, two storages of this machine; {suffix} is none, {sets}"
        for name in (source, destination):
            if name not in self.storages:
                return rather(f"there is no storage {name} of this machine, {sets}", name, self.storages)
        return f"files are never copied from {source} to itself, {sets}" if source == destination else ""

    @cached_property
    def storages(self) -> dict[str, bool]:
        """Those between which the mover copies files, by name, and whether each is a tape."""
        return dict(StorageEndpoint.objects.exclude(path="").values_list("name", "is_tape"))

    def _part_of_partition(self, key: str, suffix: str, names: list[str]) -> str:
        """The sentence on a sub queue: its partition is one queue for all who read the configuration."""
        sub = next((name for name in names if name in self.partitions and name not in self.units), None)
        if sub is None:
            return ""
        whole = self.partitions[sub]
        instead = f"{key.removesuffix(suffix)}{whole}{suffix.removeprefix(sub)}"
        return f"{sub} is part of the partition {whole}, which is one queue here: set {instead} instead"

    @cached_property
    def labels(self) -> set[str]:
        return {label for labels in known_labels.ASKED for label in labels()}

    @cached_property
    def kinds(self) -> list[str]:
        return [*(kind.name for kind in repository.resource_types()), *(f"{name}*" for name in CORE_CLASSES)]

    @cached_property
    def queues(self) -> list[WorkQueue]:
        return list(WorkQueue.objects.only("name", "function", "partition_id"))

    @cached_property
    def partitions(self) -> dict[str, str]:
        """The partition of each sub queue, by name."""
        names = {queue.id: queue.name for queue in self.queues}
        return {names[sub]: names[whole] for sub, whole in partitions_of(self.queues).items()}

    @cached_property
    def units(self) -> set[str]:
        """Work queues as they are counted, and shares that tasks can have."""
        inside = partitions_of(self.queues)
        shares = GlobalShare.objects.filter(children=None).values_list("name", flat=True)
        return {queue.name for queue in self.queues if queue.id not in inside} | set(shares)
