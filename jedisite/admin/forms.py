"""Forms of the admin that check numbers against one another."""

from __future__ import annotations

from typing import Any

from django import forms


class BoundsForm(forms.ModelForm):
    """A form with pairs of limits: the smaller one must not exceed the larger one; none is negative."""

    bounds: tuple[tuple[str, str], ...] = ()
    never_negative: tuple[str, ...] = ()

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        for low, high in self.bounds:
            least, most = values.get(low), values.get(high)
            if least is not None and most is not None and least > most:
                self.add_error(high, f"The limit {most} is below the minimum {least}.")
        for name in self.never_negative:
            value = values.get(name)
            if value is not None and value < 0:
                self.add_error(name, f"This cannot be negative; it is {value}.")
        return values
