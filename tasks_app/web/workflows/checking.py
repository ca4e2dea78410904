"""A definition is checked and shown before anything runs: every fault with its line, or the graph and its table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any, Final

from django.contrib import messages
from django.core.files.uploadedfile import InMemoryUploadedFile
from django.core.files.uploadhandler import FileUploadHandler, StopUpload
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods

from jedisite.identity.callers import Caller, Right, caller_of, needs
from jedisite.vocabulary.words import plural, sentence, shortened, thousands
from tasks_app.params.faults import FieldError, ParamErrors
from tasks_app.submission.submitting import SubmissionRefusedError
from tasks_app.web.lists.misspelt import takes
from tasks_app.web.workflows import graph_picture
from tasks_app.web.workflows.workflow_pages import dagman_download
from tasks_app.workflows.large_definitions import TooManyLargeDefinitions, place_for
from tasks_app.workflows.rules.dagman_file import dag_of, written
from tasks_app.workflows.rules.definition import Definition
from tasks_app.workflows.rules.definition_files import read_definition, told_by_line
from tasks_app.workflows.rules.forecast import Step, forecast
from tasks_app.workflows.rules.graph_folding import fold
from tasks_app.workflows.rules.implied_graph import Graph
from tasks_app.workflows.rules.package_states import PackageStatus
from tasks_app.workflows.rules.workflow_document import as_document
from tasks_app.workflows.submitting_workflows import check_submittable, submit_workflow

LONGEST: Final = 2_000_000
"""Characters of a definition that this page checks: within two seconds or so. The API and the command take longer ones."""
SHOWN_OF_A_LINE: Final = 160
MOST_FAULTS: Final = 200
MOST_ROWS: Final = 200
EXAMPLE: Final = """job reco001
restart any 1

stage 1
repeat i 1..3
line
  binary reco version p10
    run reco.sh {i}
    in raw{i} from lab.raw
    out reco{i} filt{i}
end

stage 2
repeat i 1..3
line
  binary analyze
    run analyze.sh {i}
    in reco{i} filt{i}
    out all{i}.root
end
"""
ACTS: Final = ("check", "dagman", "submit")


class KeptInMemory(FileUploadHandler):
    """The file of a form, in memory, up to the longest definition."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces = BytesIO()
        self.is_too_long = False

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        if start + len(raw_data) > 4 * LONGEST:
            self.is_too_long = True
            raise StopUpload(connection_reset=True)
        self.pieces.write(raw_data)

    def file_complete(self, file_size: int) -> InMemoryUploadedFile:
        self.pieces.seek(0)
        assert self.field_name is not None
        return InMemoryUploadedFile(
            self.pieces, self.field_name, self.file_name, self.content_type, file_size, self.charset
        )


@csrf_exempt
@needs(Right.SUBMIT)
@require_http_methods(["GET", "HEAD", "POST"])
@takes()
def workflow_check(request: HttpRequest) -> HttpResponse:
    """Paste or upload a definition: `act` is check, dagman (the graph as a file) or submit."""
    # Files of forms are thrown away but here; whoever reads the form, as the check of its token does, comes after this.
    request.upload_handlers = [KeptInMemory()]
    return _checked(request)


@csrf_protect
def _checked(request: HttpRequest) -> HttpResponse:
    context: dict[str, Any] = {"section": "workflows", "example": EXAMPLE, "text": "", "longest": LONGEST}
    if request.method != "POST":
        return render(request, "tasks_app/workflow_check.html", context)
    act = request.POST.get("act", "check")
    try:
        text = _text_of(request)
        context["text"] = text
        if act not in ACTS:
            raise ParamErrors((FieldError("act", "one of", "Choose check, dagman or submit."),))
        with place_for(len(text), caller_of(request).name):
            definition, graph = read_definition(text)
            if act == "dagman":
                return dagman_download(definition.name, written(dag_of(definition, graph)))
            if act == "submit":
                with told_by_line(text):
                    return _submit(request, definition)
            context |= _shown(text, definition, graph, caller_of(request))
    except ParamErrors as errors:
        context["faults"] = _faults(errors.errors[:MOST_FAULTS], context["text"])
        context["more_faults"] = max(len(errors.errors) - MOST_FAULTS, 0)
        return render(request, "tasks_app/workflow_check.html", context, status=400)
    except SubmissionRefusedError as error:
        context["refused"] = sentence(error)
        return render(request, "tasks_app/workflow_check.html", context, status=409)
    except TooManyLargeDefinitions as error:
        context["refused"] = str(error.detail)
        return render(request, "tasks_app/workflow_check.html", context, status=error.status_code)
    return render(request, "tasks_app/workflow_check.html", context)


def _text_of(request: HttpRequest) -> str:
    """The definition in the file that was sent, or else in the field. Raises ParamErrors."""
    file = request.FILES.get("file")
    text = request.POST.get("text", "")
    if file is not None and file.size:
        try:
            text = file.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ParamErrors((FieldError("file", "text", "The file is not a text in UTF-8."),)) from None
    if "\x00" in text:
        raise ParamErrors((FieldError("text", "characters", "A text must not contain U+0000."),))
    text = text.replace("\r\n", "\n")
    if len(text) > LONGEST or any(getattr(one, "is_too_long", False) for one in request.upload_handlers):
        said = f"It has more than {thousands(LONGEST)} characters, which is too long for this page: use manage.py workflow."
        raise ParamErrors((FieldError("text", "length", said),))
    if not text.strip():
        raise ParamErrors((FieldError("text", "required", "Paste a definition, or choose a file."),))
    return text


def _submit(request: HttpRequest, definition: Definition) -> HttpResponse:
    workflow = submit_workflow(as_document(definition), caller_of(request))
    held = " It is on hold: resume it to begin." if definition.hold else ""
    messages.success(request, f"Workflow {workflow.pk} is submitted.{held}")
    return redirect("dashboard:workflow", workflow_id=workflow.pk)


def _faults(errors: Sequence[FieldError], text: str) -> list[tuple[str, str, str]]:
    """Where each fault is, what is wrong, and the line that it is about, if it is about a line of the text."""
    lines = text.split("\n")
    found = []
    for error in errors:
        number = error.field.removeprefix("line ")
        has_line = error.field.startswith("line ") and number.isdecimal() and 0 < int(number) <= len(lines)
        line = shortened(lines[int(number) - 1].strip(), SHOWN_OF_A_LINE) if has_line else ""
        found.append((error.field or "the definition", error.message, line))
    return found


def _shown(text: str, definition: Definition, graph: Graph, owner: Caller) -> dict[str, Any]:
    """The graph as it would begin, and what keeps this site from running it."""
    states = [PackageStatus.UNSCHEDULED for _ in graph.nodes]
    declared = [sum(binary.run_time_s for binary in node.package.binaries) or None for node in graph.nodes]
    steps = [Step(PackageStatus.UNSCHEDULED, seconds) for seconds in declared]
    chain = forecast(graph, steps).chain
    no_page: Callable[..., str] = lambda box, nodes: ""  # noqa: E731 - nothing of it has a page yet
    picture = graph_picture.picture_of(graph, fold(graph, states, chain), no_page, usual_s=declared, planned=True)
    cannot: tuple[FieldError, ...] = ()
    try:
        with told_by_line(text):
            check_submittable(definition, owner)
    except ParamErrors as errors:
        cannot = errors.errors
    sizes = (
        plural(len(definition.stages), "stage"),
        plural(sum(len(stage.lines) for stage in definition.stages), "line"),
        plural(len(graph.nodes), "package"),
        plural(len(graph.edges), "dependency", "dependencies"),
    )
    return {
        "definition": definition,
        "sizes": ", ".join(sizes),
        "deep": len(chain),
        "picture": picture,
        "shape": graph_picture.BOX,
        "cannot": [f"{error.field}: {error.message}" for error in cannot[:MOST_FAULTS]],
        "packages": [
            (
                node,
                [graph.nodes[at].path for at in graph.parents[node.index]],
                declared[node.index],
                node.index in chain,
            )
            for node in graph.nodes[:MOST_ROWS]
        ],
        "more_packages": max(len(graph.nodes) - MOST_ROWS, 0),
    }
