"""Tokens that users make for their scripts."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import exceptions, serializers, status
from rest_framework.response import Response

from jedisite.identity import tokens
from jedisite.identity.callers import Right, Scope
from jedisite.identity.one_line import check_one_line
from jedisite.models import ApiToken
from jedisite.web.choices import Choice
from jedisite.web.problems import Conflict
from tasks_app.api.v2.base import Lists, Resource, StrictSerializer


class TokenSerializer(serializers.ModelSerializer[ApiToken]):
    class Meta:
        model = ApiToken
        fields = ["id", "name", "scope", "prefix", "created", "expires", "last_used", "revoked"]


class NewTokenSerializer(StrictSerializer):
    name = serializers.CharField(max_length=100, validators=[check_one_line], help_text="purpose of the token")
    scope = Choice(choices=ApiToken.SCOPES, default="all", help_text="scope of the token")
    days = serializers.IntegerField(min_value=1, max_value=tokens.LONGEST_DAYS, default=tokens.USUAL_DAYS)


class MadeTokenSerializer(TokenSerializer):
    """A new token. `token` is shown this once."""

    token = serializers.CharField(read_only=True)

    class Meta(TokenSerializer.Meta):
        fields = [*TokenSerializer.Meta.fields, "token"]


@extend_schema_view(
    list=extend_schema(
        summary="One's own tokens",
        description="Newest first. A token itself is shown only once, when it is made.",
    )
)
class TokenViewSet(Lists, Resource):
    rights = {"list": Right.READ, "create": Right.TOKENS, "destroy": Right.TOKENS}
    queryset = ApiToken.objects.all()
    serializer_class = TokenSerializer

    def get_queryset(self) -> QuerySet[ApiToken]:
        if getattr(self, "swagger_fake_view", False):
            return ApiToken.objects.all()
        return tokens.of_user(self.caller.name)

    @extend_schema(
        summary="Make a token for oneself",
        description="The token is shown only in this answer. A token made with another token expires no later than that one.",
        request=NewTokenSerializer,
        responses={201: MadeTokenSerializer},
    )
    def create(self, request: Any) -> Response:
        body = NewTokenSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        given = body.validated_data
        try:
            token, row = tokens.make(
                self.caller.name,
                given["name"],
                days=given["days"],
                scope=Scope(given["scope"]),
                by=self.actor(),
                ends=tokens.latest_end(self.request),
            )
        except tokens.NotAPersonError as exc:
            raise exceptions.PermissionDenied(str(exc)) from exc
        except tokens.NoTokenError as exc:
            raise Conflict(str(exc)) from exc
        data = {**TokenSerializer(row).data, "token": token}
        return Response(data, status=status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})

    @extend_schema(summary="Revoke a token", description="The token is revoked.", request=None, responses={204: None})
    def destroy(self, request: Any, pk: int) -> Response:
        actor = self.actor()
        row = self.get_queryset().filter(pk=pk).first()
        if row is None:
            raise exceptions.NotFound("You have no such token.")
        tokens.revoke(row, by=actor)
        return Response(status=status.HTTP_204_NO_CONTENT)
