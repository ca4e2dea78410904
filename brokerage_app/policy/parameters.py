"""The parameters that an installation may set in the table of the configuration (gdp_config), each with its default. Pure.

Names, units and defaults are those of the JEDI brokerage document and, where it gives none, of the running system
(brokerage 3, lifecycle 9). A parameter that is not in PARAMETERS is not known and cannot be set.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final

from brokerage_app.policy.broker_parameters import BROKER_PARAMETERS
from brokerage_app.policy.parameter import Parameter, UnknownParameterError
from brokerage_app.policy.task_parameters import TASK_PARAMETERS
from brokerage_app.policy.watchdog_parameters import WATCHDOG_PARAMETERS

PARAMETERS: Final[tuple[Parameter, ...]] = (*BROKER_PARAMETERS, *WATCHDOG_PARAMETERS, *TASK_PARAMETERS)
"""All parameters, in the order in which they are shown. Each has a reader."""

_POOL: Final = "tasks are not converted to the event service here; a task that wants it says so itself"
NOT_AVAILABLE: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        ("JumboWatchDog", ""): "its parameters are those of the component jumbo_dog",
        ("taskrefiner", "AES_"): _POOL,
        (
            "jobgen",
            "TYPNFILES",
        ): "the job generator counts the jobs that it makes, so that it need not estimate their inputs; "
        "NFILES limits the files that a pass reads",
    }
)
"""Parameters of the JEDI documents that nothing here could follow, by component and how the key begins, with the sentence
that whoever sets one gets."""

BY_NAME: Final[Mapping[tuple[str, str], Parameter]] = MappingProxyType({(p.component, p.key): p for p in PARAMETERS})
COMPONENTS: Final[Mapping[str, str]] = MappingProxyType({p.component: p.app for p in reversed(PARAMETERS)})
_SPELLINGS: Final[Mapping[str, tuple[tuple[str, Parameter], ...]]] = MappingProxyType(
    {
        component: tuple(
            sorted(
                ((k, p) for p in PARAMETERS if p.component == component for k in (p.key, *p.also)),
                key=lambda x: -len(x[0]),
            )
        )
        for component in COMPONENTS
    }
)
"""For each component its keys in all spellings, the longest first."""


def known(component: str, key: str, suffixes: int = 0) -> Parameter:
    """The parameter of this name. Raises UnknownParameterError, also for more suffixes than it has."""
    found = BY_NAME.get((component, key))
    if found is None:
        raise UnknownParameterError(f"there is no parameter {key} of {component}; {nearest(component, key)}")
    if suffixes > len(found.per):
        raise UnknownParameterError(f"{found.name} of {component} takes {len(found.per)} suffixes, not {suffixes}")
    return found


def parse_key(component: str, key: str) -> tuple[Parameter, str] | None:
    """The parameter that a stored key sets, and its suffix as one text; None when it is not known.

    Suffixes may contain blanks and underscores: names of shares and of queues do.
    """
    for spelling, parameter in _SPELLINGS.get(component, ()):
        if key == spelling:
            return parameter, ""
        if parameter.per and key.startswith(f"{spelling}_") and len(key) > len(spelling) + 1:
            return parameter, key[len(spelling) + 1 :]
    return None


def nearest(component: str, key: str) -> str:
    """A sentence with the known name that is nearest to a name that is not known, or on why there is no such parameter."""
    for (of, begin), why in NOT_AVAILABLE.items():
        if of == component and key.startswith(begin):
            return why
    elsewhere = sorted({c for c in COMPONENTS if parse_key(c, key) is not None})
    if elsewhere:
        return f"{key} is a parameter of {' and of '.join(elsewhere)}"
    if component not in COMPONENTS:
        near = get_close_matches(component, COMPONENTS, 1, 0.0)
        return f"the component with the nearest name is {near[0]}"
    keys = [p.key for p in PARAMETERS if p.component == component]
    near = get_close_matches(key, keys, 1, 0.6)
    if near:
        return f"the parameter of {component} with the nearest name is {near[0]}"
    anywhere = get_close_matches(key, [p.key for p in PARAMETERS], 1, 0.0)
    other = next(p for p in PARAMETERS if p.key == anywhere[0])
    return f"the parameter with the nearest name is {other.key} of {other.component}"
