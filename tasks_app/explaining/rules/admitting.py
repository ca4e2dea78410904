"""The one setting of a queue that would take away the objection to most of the tasks it was skipped for. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor
from typing import Any, Final

from brokerage_app.advice.largest import most_of
from brokerage_app.advice.remedies import ENOUGH_GB
from brokerage_app.vocabulary import codes


@dataclass(frozen=True, slots=True)
class Setting:
    """A column of queues that a refusal hangs on, the field of the broker's view of it, and its unit.

    of_slot   it is of a whole slot, or of each core where a queue is described so
    storage   it is the space that jobs may fill of the storage whose name is in the place of the column
    """

    column: str
    field: str
    title: str
    unit: str = ""
    raises: bool = True
    of_slot: bool = False
    storage: bool = False


STATUS: Final = Setting("status", "status", "status")
SETTINGS: Final[Mapping[str, Setting]] = {
    codes.LOW_MEMORY: Setting("max_memory_mb", "max_memory_mb", "memory of a slot", "MB", of_slot=True),
    codes.HIGH_MEMORY: Setting(
        "min_memory_mb", "min_memory_mb", "minimum memory of a job", "MB", raises=False, of_slot=True
    ),
    codes.SHORT_WALLTIME: Setting("max_walltime_s", "max_walltime_s", "time limit", "s"),
    codes.LONG_WALLTIME: Setting("min_walltime_s", "min_walltime_s", "minimum walltime of a job", "s", raises=False),
    codes.SCRATCH_DISK: Setting("work_dir_mb", "work_dir_mb", "scratch disk of a slot", "MB", of_slot=True),
    codes.TOO_FEW_CORES: Setting("core_count", "cores", "cores of a slot"),
    codes.SITE_OFFLINE: STATUS,
    codes.SITE_PAUSED: STATUS,
    codes.SITE_STANDBY: STATUS,
    codes.SITE_BROKEROFF: STATUS,
    codes.SITE_TEST_ONLY: STATUS,
}


@dataclass(frozen=True, slots=True)
class Proposal:
    """A new value of a setting, how many tasks would not be objected to for it any more, and the most urgent of them.

    ratios   by task, the most urgent first: what it needs as a part of what is offered; of a storage the GB that must be usable
    cores    of a slot, where `now` and `value` are of each of its cores; else 1
    """

    setting: Setting
    now: Any
    ratios: Mapping[int, float]
    cores: int = 1

    @property
    def title(self) -> str:
        if self.cores == 1:
            return self.setting.title
        return self.setting.title.replace("a slot", "each core").replace("a job", "each core of a job")

    @property
    def value(self) -> Any:
        if self.setting is STATUS:
            return "online"
        if self.setting.storage:
            return ceil(max(self.ratios.values()))
        if self.setting.raises:
            return ceil(self.now * max(self.ratios.values()) - 1e-6)
        return floor(self.now * min(self.ratios.values()) + 1e-6)

    @property
    def tasks(self) -> int:
        return len(self.ratios)

    @property
    def example(self) -> int:
        return next(iter(self.ratios))

    def only(self, tasks: Collection[int]) -> Proposal:
        """The same for some of the tasks."""
        return replace(self, ratios={task: ratio for task, ratio in self.ratios.items() if task in tasks})

    def change(self, queue: str) -> str:
        """As a line for the what-if, which has limits of whole slots."""
        if self.setting.storage:
            # Usable is what is free and what has expired, without what must stay free or cannot be used.
            return f"endpoint.{self.setting.column}.{self.setting.field}={ENOUGH_GB}"
        value = f'"{self.value}"' if isinstance(self.value, str) else self.value * self.cores
        return f"site.{queue}.{self.setting.field}={value}"


def proposals(
    skips: Iterable[tuple[int, str, Sequence[Any]]], limits: Mapping[str, Any], cores: int = 1
) -> list[Proposal]:
    """What to set, for most tasks first. `skips`: (task, code, its numbers: what is needed, what is offered), most urgent first.

    `limits` are the present values of the queue's columns; `cores` those of a slot, where columns are of each of its cores.
    A part of a queue that cuts its slots to size may tell its own numbers, as it has a fixed part of the slot. Numbers may
    be in another unit than the setting: it is changed by their ratio, as far as the most demanding of the tasks needs it.
    A queue tells only its first objection to a task.
    Tasks that ask for more than a slot of any site has (`largest.most_of`) count for no setting: theirs is what is wrong.
    """
    wanted: dict[Setting, dict[int, float]] = {}
    free: dict[str, int] = {}
    for task, code, numbers in skips:
        if code == codes.STORAGE_FULL and _are_two(numbers) and len(numbers) > 2:
            name = str(numbers[2])
            wanted.setdefault(_space(name), {}).setdefault(task, numbers[0])
            free.setdefault(name, floor(numbers[1]))
            continue
        setting = SETTINGS.get(code)
        if setting is None:
            continue
        ratio = 1.0
        if setting is not STATUS:
            if not limits.get(setting.column) or not _are_two(numbers) or not numbers[1]:
                continue
            ratio = numbers[0] / numbers[1]
            most = most_of(setting.column, limits.get("core_count") or 0)
            if limits[setting.column] * ratio * _of(setting, cores) > most:
                continue
            if setting.field == "cores" and numbers[1] != limits[setting.column]:
                continue  # a part of the slot, whose cores follow from the kind of job
        wanted.setdefault(setting, {}).setdefault(task, ratio)
    found = [
        Proposal(setting, (free if setting.storage else limits).get(setting.column), ratios, _of(setting, cores))
        for setting, ratios in wanted.items()
    ]
    return sorted(found, key=lambda one: (-one.tasks, one.setting.column))


def _space(name: str) -> Setting:
    return Setting(name, "space_free_gb", f"usable space at {name}", "GB", storage=True)


def _of(setting: Setting, cores: int) -> int:
    return cores if setting.of_slot else 1


def _are_two(numbers: Sequence[Any]) -> bool:
    return len(numbers) >= 2 and all(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers[:2])
