"""API v2: who the caller is."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from jedisite.identity.callers import Right, Role
from tasks_app.api.v2.base import Resource


class MeSerializer(serializers.Serializer[Any]):
    """A caller: the name that owns tasks and stands in the logs, roles, and what they allow."""

    name = serializers.CharField()
    roles = serializers.ListField(child=serializers.ChoiceField(choices=[r.value for r in Role]))
    rights = serializers.ListField(child=serializers.CharField())
    site = serializers.CharField(help_text="the queue that a pilot may serve; empty: any")
    scope = serializers.CharField(help_text="scope of the token: all, submit or read")
    groups = serializers.ListField(
        child=serializers.CharField(), help_text="working groups whose tasks one may command"
    )
    member_of = serializers.ListField(
        child=serializers.CharField(), help_text="working groups whose output files one may fetch"
    )
    vo = serializers.CharField(help_text="the VO whose issuer identifies the caller; empty: this site")


class MeViewSet(Resource):
    rights = {"retrieve": Right.NOTHING}
    serializer_class = MeSerializer
    pagination_class = None
    filter_backends = []

    @extend_schema(
        summary="Who am I",
        description="The caller's name, roles and rights. Without a login: the role anonymous and an empty name.",
        responses=MeSerializer,
    )
    def retrieve(self, request: Any) -> Response:
        caller = self.caller
        found = {
            "name": caller.name,
            "roles": sorted(caller.roles),
            "rights": sorted(right.value for right in Right if right is not Right.NOTHING and caller.may(right)),
            "scope": caller.scope,
            "groups": sorted(caller.manages),
            "member_of": sorted(caller.member_of),
            "vo": caller.vo,
            "site": caller.site,
        }
        return Response(MeSerializer(found).data)
