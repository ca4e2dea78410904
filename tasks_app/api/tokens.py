"""Tokens that users make for their scripts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import exceptions, status
from rest_framework.response import Response

from jedisite import audit
from jedisite.identity import Right, bearer, issue_token, revoke_token, row_of_token
from jedisite.models import ApiToken
from jedisite.problems import Conflict
from tasks_app.api.base import Lists, Resource
from tasks_app.api.serializers import MadeTokenSerializer, NewTokenSerializer, TokenSerializer

MOST_TOKENS = 100
"""Valid tokens of one user."""


@extend_schema_view(
    list=extend_schema(
        summary="One's own tokens",
        description="Newest first. The tokens themselves are shown when they are made, and never again.",
    )
)
class TokenViewSet(Lists, Resource):
    rights = {"list": Right.READ, "create": Right.TOKENS, "destroy": Right.TOKENS}
    queryset = ApiToken.objects.all()
    serializer_class = TokenSerializer

    def get_queryset(self) -> QuerySet[ApiToken]:
        if getattr(self, "swagger_fake_view", False):
            return ApiToken.objects.all()
        return ApiToken.objects.filter(kind="user", user__username=self.caller.name)

    @extend_schema(
        summary="Make a token for oneself",
        description="The token is shown this once. One that is made with a token ends no later than that one.",
        request=NewTokenSerializer,
        responses={201: MadeTokenSerializer},
    )
    def create(self, request: Any) -> Response:
        body = NewTokenSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        actor = self.actor()
        with transaction.atomic():
            # The lock keeps the number of tokens exact when several are asked for at once.
            user = User.objects.select_for_update().filter(username=self.caller.name, is_active=True).first()
            if user is None:
                raise exceptions.PermissionDenied("Only people make tokens.")
            if self.get_queryset().filter(revoked=False, expires__gt=timezone.now()).count() >= MOST_TOKENS:
                raise Conflict(f"You have {MOST_TOKENS} valid tokens; revoke one first.")
            token = issue_token(body.validated_data["name"], "user", user=user, lifetime=self._lifetime(body))
            row = row_of_token(token)
            assert row is not None
            audit.record(actor, "token.make", "token", row.id, details={"name": row.name, "expires": str(row.expires)})
        data = {**TokenSerializer(row).data, "token": token}
        return Response(data, status=status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})

    def _lifetime(self, body: NewTokenSerializer) -> timedelta:
        wanted = timedelta(days=body.validated_data["days"])
        used = bearer(self.request)
        row = row_of_token(used) if used else None
        return min(wanted, row.expires - timezone.now()) if row else wanted

    @extend_schema(summary="Revoke a token", description="It works no more.", request=None, responses={204: None})
    def destroy(self, request: Any, pk: int) -> Response:
        actor = self.actor()
        row = self.get_queryset().filter(pk=pk).first()
        if row is None:
            raise exceptions.NotFound("You have no such token.")
        with transaction.atomic():
            revoke_token(row)
            audit.record(actor, "token.revoke", "token", row.id)
        return Response(status=status.HTTP_204_NO_CONTENT)
