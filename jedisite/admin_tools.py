"""Tools on the change pages of the admin: they look at the form as it is filled in, and nothing is saved by that."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest

from jedisite.admin_base import AuditedAdmin

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
        """What the tool has found out. The form was looked at: its values are in `cleaned_data`, faults in `errors`."""
        raise NotImplementedError

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        if TRY not in request.POST:
            return form

        class Tried(form):  # type: ignore[misc, valid-type] # a class made for this request
            """The page shows a form that is not valid again, with what was typed: that is all the tool needs."""

            def is_valid(self) -> bool:
                super().is_valid()
                return False

        return Tried

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        used = TRY in request.POST
        form, tool = context["adminform"].form, self.tool_form(request.POST if used else None)
        context |= {"tool": tool, "try": TRY, **self.tool_context(request, form, context.get("original"))}
        if used and tool.is_valid():
            context["tried"] = self.tried(request, form, tool)
        return super().render_change_form(request, context, *args, **kwargs)
