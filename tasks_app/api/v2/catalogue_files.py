"""API v2: the files of a dataset of the catalogue, by name, for those who say themselves which job reads what."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from jedisite.identity.callers import Right
from jedisite.web.problems import Conflict
from tasks_app.api.v2.base import Resource, none_of
from tasks_app.ddm import data_management
from tasks_app.ddm.base import UnknownDatasetError

MOST_FILES: Final = 100_000


class CatalogueFileSerializer(serializers.Serializer[Any]):
    lfn = serializers.CharField()
    size = serializers.IntegerField(help_text="bytes")
    events = serializers.IntegerField(allow_null=True)


class CatalogueFilesSerializer(serializers.Serializer[Any]):
    dataset = serializers.CharField()
    open = serializers.BooleanField(help_text="files may still be added")
    files = CatalogueFileSerializer(many=True)


class CatalogueFilesViewSet(Resource):
    rights = {"retrieve": Right.READ}
    serializer_class = CatalogueFilesSerializer
    pagination_class = None
    filter_backends = []

    @extend_schema(
        summary="Files of a dataset of the catalogue",
        description=f"All of them by name in one answer; of a container, dataset by dataset. 409 for more than {MOST_FILES}.",
        responses=CatalogueFilesSerializer,
    )
    def retrieve(self, request: Any, name: str) -> Response:
        catalogue, bare = data_management(), name.rpartition(":")[2].replace("\x00", "")
        try:
            found = catalogue.describe(bare)
            if found.files > MOST_FILES:
                raise Conflict(f"{bare} has {found.files} files, and at most {MOST_FILES} are listed in one answer.")
            files = [file for page in catalogue.list_files(bare) for file in page]
        except UnknownDatasetError as error:
            raise none_of("dataset", bare) from error
        rows = [{"lfn": file.lfn, "size": file.size, "events": file.events} for file in files]
        return Response({"dataset": found.name, "open": found.open, "files": rows})
