"""Settings that are a list of names with numbers, such as `JEDI_SLOW_CLIENTS=head=15,body=30`. Pure."""

from __future__ import annotations

from collections.abc import Mapping


def merged(given: Mapping[str, str], defaults: Mapping[str, float], *, least: float, most: float) -> dict[str, float]:
    """The numbers in force: those given, and the defaults of the others.

    Raises ValueError with a sentence for a name that the defaults have not, and for what is no number from least to most.
    """
    if unknown := sorted(set(given) - set(defaults)):
        raise ValueError(f"there is no limit called {', '.join(unknown)}; there are {', '.join(defaults)}")
    found = dict(defaults)
    for name, text in given.items():
        try:
            found[name] = float(text)
        except ValueError:
            raise ValueError(f"{name} is {text!r}; it must be a number") from None
        if not least <= found[name] <= most:
            raise ValueError(f"{name} is {text}; it must lie between {least:g} and {most:.12g}")
    return found
