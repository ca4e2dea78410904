"""Which keys of an item are read, by the kind of item: all others would have no effect, and are refused or told. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tasks_app.params.dataset_attributes import IN_CVMFS, MANYTIME, TOKENS
from tasks_app.params.event_service import kind_of
from tasks_app.params.faults import Faults, join_path
from tasks_app.params.items import ITEM_KEYS, Item
from tasks_app.params.kinds import split_names

if TYPE_CHECKING:
    from tasks_app.params.schema import TaskParams

EFFECT: Final = "without effect"
"""The rule that a key breaks which nothing would read, as clients read it."""
CONSTANT, NUMBER, PRIMARY, SECONDARY = "a constant", "a number", "the primary input", "a secondary input"
SEQUENCE, OUTPUT, LOG, LOG_APART = "a sequence of numbers", "an output", "a log among the jobParameters", "a log"
_IN_LINE: Final = frozenset({"type", "value", "hidden", "padding", "es_only"})
"""Of what stands in the command line."""
_WORDS: Final = frozenset({"nosplit", "repeat"})
_CHOOSE: Final = frozenset({"include", "exclude", "files", "offset", "random", "usedup", "check", "indexConsistent"})
_READ: Final = frozenset({"dataset", "expand", "consolidate", "distributed", MANYTIME, IN_CVMFS, *_CHOOSE})
_SHARED: Final = frozenset({"ratio", "nFilesPerJob", "reusable", *_WORDS})
_MADE: Final = frozenset({"type", "value", "param_type", "dataset", "container", "token", "destination", "offset"})
READ: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        CONSTANT: _IN_LINE,
        NUMBER: _IN_LINE | {"param_type", "offset"},
        PRIMARY: _IN_LINE | {"param_type"} | _READ,
        SECONDARY: _IN_LINE | {"param_type", "eventRatio"} | _READ | _SHARED,
        SEQUENCE: _IN_LINE | {"param_type", "dataset", "offset", "num_records"} | _SHARED,
        OUTPUT: _IN_LINE | _MADE | {"allowNoOutput", "transient", "mergeOnly"},
        LOG: _IN_LINE | _MADE | {"transient", "mergeOnly"},
        LOG_APART: _MADE | {"transient"},
    }
)
"""Keys, and words of `attributes`."""
_TOLD: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        # Workflow systems name a storage for everything, and say of any input that all jobs share it.
        PRIMARY: frozenset({"token", "reusable", *_WORDS}),
        SECONDARY: frozenset({"token"}),
        SEQUENCE: frozenset({"token"}),
        LOG: frozenset({"allowNoOutput"}),
        LOG_APART: frozenset({"allowNoOutput", "hidden", "padding", "es_only", "mergeOnly"}),
    }
)
"""What is taken all the same, and told."""
_OTHERWISE: Final = ("attributes", "pseudo")
"""The words of attributes stand for themselves, and what the site does not offer is refused for every item."""
_KEY_OF: Final = MappingProxyType({token: key for key, token in TOKENS.items()})


def unread_keys(params: TaskParams, faults: Faults) -> None:
    """Add a fault for each key of an item that nothing would read."""
    for item, kind in _kinds(params):
        if isinstance(item.raw.get("files"), list) and not item.raw["files"]:
            said = "This list is empty, so it would choose no file: leave it out where all files are to be read."
            faults.add(join_path(item.where, "files"), "not empty", said)
        for key, where in _unread(item, kind, params):
            if key not in _TOLD.get(kind, ()):
                faults.add(where, EFFECT, f"{key} has no effect on {kind}: it is for {_for_what(key)}.")
        for key, reason in _CONDITIONS.items():
            if key in READ[kind] and _is_given(item, key) and (said := reason(params, item)):
                faults.add(join_path(item.where, key), EFFECT, f"{key} has no effect {said}.")


def told_keys(params: TaskParams) -> Iterator[str]:
    """A sentence on each key that is taken though nothing reads it."""
    for item, kind in _kinds(params):
        for key, where in _unread(item, kind, params):
            if key in _TOLD.get(kind, ()):
                yield f"{where}: {key} has no effect on {kind}."


def primary_of(params: TaskParams) -> Item | None:
    """The input whose files are the work of the task; None where the task makes up its work."""
    if params.flag("noInput"):
        return None
    events = kind_of(params) is not None
    read = (item for item in params.items if item.is_template and item.param_type in ("input", "pseudo_input"))
    return next((item for item in read if events or not item.flag("es_only")), None)


def _kinds(params: TaskParams) -> Iterator[tuple[Item, str]]:
    primary = primary_of(params)
    for item in params.items:
        if not item.is_template:
            if not _repeats(item, params):
                yield item, CONSTANT
        elif item.param_type == "pseudo_input":
            yield item, SEQUENCE
        elif item.param_type == "input":
            yield item, PRIMARY if item is primary else SECONDARY
        else:
            yield item, {"output": OUTPUT, "log": LOG}.get(item.param_type or "", NUMBER)
    for item in (*params.logs, *params.merge_logs):
        yield item, LOG_APART


def _repeats(constant: Item, params: TaskParams) -> bool:
    """Whether a constant has keys of the template of its stream, as PanDA's client writes a stream for the second time."""
    keys = {key for key in constant.raw if key not in READ[CONSTANT]}
    templates = (item for item in params.items if item.is_template and item.stream == constant.stream)
    return any(all(_bare(one.raw.get(key)) == _bare(constant.raw[key]) for key in keys) for one in templates)


def _bare(value: object) -> object:
    return value.rstrip("/") if isinstance(value, str) else value


def _unread(item: Item, kind: str, params: TaskParams) -> Iterator[tuple[str, str]]:
    """Keys, and words of attributes, that are given and not read, each with its field."""
    for key in ITEM_KEYS:
        if key not in (*READ[kind], *_OTHERWISE) and _is_given(item, key):
            if key == "mergeOnly" and item in params.merge_logs:
                continue  # it is what merge jobs alone write
            yield key, join_path(item.where, key)
    for piece in split_names(item.text("attributes") or ""):
        word = piece.partition("=")[0]
        word = _KEY_OF.get(word, word)
        if word not in READ[kind]:
            yield word, join_path(item.where, "attributes")


def _is_given(item: Item, key: str) -> bool:
    """Whether a key asks for anything; what is as it would be without it does not."""
    value = item.raw.get(key)
    return value is not None and not value if key == "padding" else bool(value)


def _for_what(key: str) -> str:
    kinds = [kind for kind, keys in READ.items() if key in keys and kind != LOG]
    return " or ".join([", ".join(kinds[:-1]), kinds[-1]] if len(kinds) > 1 else kinds) if kinds else "no item"


def has_parent(params: TaskParams) -> bool:
    return bool(params.whole("parent_tid") or params.text("parentTaskName"))


def _without_parent(params: TaskParams, item: Item) -> str:
    return "" if has_parent(params) else "without a parent, whose files are those that are taken: give parent_tid"


def _without_merging(params: TaskParams, item: Item) -> str:
    return "" if params.flag("mergeOutput") else "without mergeOutput, which makes merge jobs"


def _without_partner(params: TaskParams, item: Item) -> str:
    marked = [one for one in params.items if one.is_template and one.flag("indexConsistent")]
    alone = len(marked) == 1 and len(item.datasets) == 1 and item.stream not in params.datasets_for
    is_one = alone and not item.flag("expand") and not item.datasets[0].endswith("/")
    return "on a single dataset: the other dataset of the pair needs it as well" if is_one else ""


def _without_start(params: TaskParams, item: Item) -> str:
    if item.param_type != "number" or any(name in item.value for name in ("{RNDMSEED", "{FIRSTEVENT")):
        return ""
    return "on this number: ${FIRSTEVENT} and ${RNDMSEED} have a start"


_CONDITIONS: Final[Mapping[str, Callable[[TaskParams, Item], str]]] = MappingProxyType(
    {
        "check": _without_parent,
        "mergeOnly": _without_merging,
        "indexConsistent": _without_partner,
        "offset": _without_start,
    }
)
"""Keys that are read in some tasks only: each says why not in this one, after "has no effect"."""
