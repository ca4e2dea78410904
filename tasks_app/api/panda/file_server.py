"""The archives with users' code, as PanDA's clients look for them and send them."""

from __future__ import annotations

from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler
from django.http import HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParser
from django.http.request import split_domain_port
from rest_framework import serializers

from jedisite.identity.callers import Caller, Right
from jedisite.vocabulary.words import thousands
from tasks_app.api.panda.call_params import Number, Params
from tasks_app.api.panda.calls import Ask, call
from tasks_app.api.panda.wire import BadCallError, envelope, refused
from tasks_app.submission import sandbox_uploads, sandboxes

FRAME_BYTES = 64 * 1024
"""What a form may have beside the file."""


class CacheParams(Params):
    file_size = Number(help_text="bytes of the archive")
    checksum = Number(min_value=-(2**31), max_value=2**32 - 1, help_text="CRC-32 from the end of the gzip file")


class UploadParams(Params):
    file = serializers.FileField(max_length=250, help_text="a gzip archive; it is fetched by its file name")


class NamesAsSent(MultiPartParser):
    """Leaves the folders out of the name of a file, as PanDA does, and nothing else.

    Django takes out what it does not like, so that a file would be kept under another name than the sender's, unsaid.
    """

    def sanitize_file_name(self, file_name: str) -> str | None:
        name = file_name.rpartition("/")[2]
        return None if name in ("", ".", "..") else name


class Received(UploadedFile):
    """A file that has arrived, or was refused on its way: its handler knows."""

    def __init__(self, name: str, size: int, handler: SandboxUpload) -> None:
        super().__init__(name=name, size=size)
        self.handler = handler


class SandboxUpload(FileUploadHandler):
    """Writes one file to where sandboxes are kept as it arrives.

    What is refused is read to its end all the same, since a client that still sends does not read the answer; but for
    a request that is far too large.
    """

    chunk_size = 1 << 20

    def __init__(self, request: HttpRequest, caller: Caller) -> None:
        super().__init__(request)
        self.owner, self.files, self.refusal = caller.name, 0, ""
        self.incoming: sandbox_uploads.Incoming | None = None
        request.parse_file_upload = lambda META, post_data: (  # type: ignore[method-assign]
            NamesAsSent(META, post_data, request.upload_handlers, request.encoding).parse()
        )

    def handle_raw_input(
        self, input_data: Any, META: dict[str, str], content_length: int, boundary: str, encoding: str | None = None
    ) -> None:
        limit = sandbox_uploads.LIMIT_BYTES
        if content_length > limit + FRAME_BYTES:
            self.refusal = f"the sandbox has more than {thousands(limit)} bytes"
        if content_length > 2 * limit:
            raise BadCallError(self.refusal)

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        self.files += 1
        if self.files > 1:
            self._refuse("only one file is accepted at a time")
        if not self.refusal:
            try:
                self.incoming = sandbox_uploads.Incoming(self.owner, self.file_name or "")
            except sandbox_uploads.SandboxRefusedError as exc:
                self._refuse(str(exc))

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        if self.incoming is None or self.refusal:
            return
        try:
            self.incoming.write(raw_data)
        except sandbox_uploads.SandboxRefusedError as exc:
            self._refuse(str(exc))

    def file_complete(self, file_size: int) -> Received:
        if not file_size:
            self._refuse("the file is empty")
        return Received(self.file_name or "", file_size, self)

    def upload_interrupted(self) -> None:
        if self.incoming is not None:
            self.incoming.drop()

    def _refuse(self, sentence: str) -> None:
        self.upload_interrupted()
        self.incoming, self.refusal = None, self.refusal or sentence


@call("file_server/validate_cache_file", "POST", Right.SUBMIT, CacheParams)
def validate_cache_file(ask: Ask) -> HttpResponse:
    """Find one's own sandbox with the same content as a new one.

    The message is FOUND:<host>:<name>, or NOTFOUND.
    """
    host = split_domain_port(ask.request.get_host())[0]
    row = sandboxes.same(ask.caller.name, ask.given["file_size"], ask.given["checksum"] & 0xFFFFFFFF)
    if row is None or ":" in host:  # its readers cut the message at colons
        return refused("NOTFOUND")
    sandboxes.used(row.name)
    return envelope(message=f"FOUND:{host}:{row.name}")


@call("file_server/upload_cache_file", "POST", Right.SUBMIT, UploadParams, uploads=SandboxUpload)
def upload_cache_file(ask: Ask) -> HttpResponse:
    """Upload a sandbox. Its name must be new, unless it ends with .__ow__."""
    handler = ask.given["file"].handler
    if handler.incoming is None:
        return refused(handler.refusal)
    try:
        handler.incoming.finish()
    except sandbox_uploads.SandboxRefusedError as exc:
        return refused(str(exc))
    return envelope()
