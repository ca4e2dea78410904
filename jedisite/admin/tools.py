"""Tools on the change pages of the admin: they look at the form as it is filled in, and nothing is saved by that."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest

from jedisite.admin.base import AuditedAdmin

TRY = "_try"
"""Name of the button that uses the tool."""


class ToolAdmin(AuditedAdmin):
    """A page with a tool below its form. The tool gets the unsaved values of the form along with its own."""

    tool_template: str

    def tool_form(self, data: Any) -> forms.Form:
        """What the tool asks for; `data` is None when it was not used yet."""
        return forms.Form(data, prefix=TRY)

    def tool_context(self, request: HttpRequest, form: Any, obj: Any) -> dict[str, Any]:
        """What the tool shows whether it is used or not."""
        return {}

    def tried(self, request: HttpRequest, form: Any, tool: Any) -> dict[str, Any]:
        """What the tool has found out, when it is one that is used.

        The form was looked at: its values are in `cleaned_data`, faults in `errors`.
        """
        return {}

    def must_look(self, request: HttpRequest, form: Any) -> bool:
        """Whether a valid form is shown again with what the tool has found out, before it may be saved."""
        return False

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        if request.method != "POST":
            return form
        model_admin = self

        class Looked(form):  # type: ignore[misc, valid-type] # a class made for this request
            """The page shows a form that is not valid again, with what was typed: that is all the tool needs."""

            looked = False

            def is_valid(self) -> bool:
                valid = super().is_valid()
                self.looked = TRY in request.POST or (valid and model_admin.must_look(request, self))
                return valid and not self.looked

        return Looked

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        form = context["adminform"].form
        used = getattr(form, "looked", False)
        if used and TRY not in request.POST:
            messages.warning(
                request, "Nothing is saved yet. The effect is shown below the form; save again to store it."
            )
        tool = self.tool_form(request.POST if used else None)
        context |= {"tool": tool, "try": TRY, **self.tool_context(request, form, context.get("original"))}
        if used and tool.is_valid():
            context["tried"] = self.tried(request, form, tool)
        return super().render_change_form(request, context, *args, **kwargs)
