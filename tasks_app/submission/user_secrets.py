"""Secrets of users: kept encrypted, given to their owner and to those of their jobs that ask for them.

The key comes from the site's signing key. Whoever reads the database alone learns the names, not the values.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterable

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.utils.encoding import force_bytes

from jedisite import audit
from jedisite.vocabulary.words import NOT_ONE_LINE, is_one_line
from tasks_app.models import UserSecret

log = logging.getLogger(__name__)
LONGEST_NAME = 200
LONGEST_VALUE = 1_024_000
"""Characters; as many as pbook lets through."""
MOST_SECRETS = 50
"""Secrets of one user."""


class SecretRefusedError(ValueError):
    """A secret is too long, or there are too many; the sentence says which."""


class UnreadableSecretError(ValueError):
    """A secret was stored under another key of the site, which is not there any more."""


def set_secret(user: str, name: str, value: str) -> None:
    """Store a secret in place of an older one of that name. Raises SecretRefusedError."""
    if not 1 <= len(name) <= LONGEST_NAME:
        raise SecretRefusedError(f"key: the name of a secret has 1 to {LONGEST_NAME} characters, not {len(name)}")
    if not is_one_line(name):
        raise SecretRefusedError(f"key: {name[:60]!r} {NOT_ONE_LINE}")
    if len(value) > LONGEST_VALUE:
        raise SecretRefusedError(f"value: a secret has at most {LONGEST_VALUE} characters, not {len(value)}")
    with transaction.atomic():
        others = UserSecret.objects.filter(user=user).exclude(name=name).count()
        if others >= MOST_SECRETS:
            raise SecretRefusedError(f"key: you have {others} secrets; the limit is {MOST_SECRETS}")
        sealed = _cipher().encrypt(value.encode())
        UserSecret.objects.update_or_create(user=user, name=name, defaults={"value": sealed})
        audit.record(user, "set secret", "user", user, details={"name": name})


@transaction.atomic
def delete_secrets(user: str, name: str | None = None) -> int:
    """Delete one secret of a user, or all of them. Returns how many there were."""
    chosen = UserSecret.objects.filter(user=user)
    count, _ = (chosen if name is None else chosen.filter(name=name)).delete()
    if count:
        audit.record(user, "delete secrets", "user", user, details={"name": name, "count": count})
    return count


def secrets_of(user: str, names: Iterable[str] | None = None) -> dict[str, str]:
    """The secrets of a user by name, or some of them. Raises UnreadableSecretError."""
    rows = UserSecret.objects.filter(user=user).order_by("name")
    if names is not None:
        rows = rows.filter(name__in=list(names))
    found: dict[str, str] = {}
    cipher = _cipher()
    for name, sealed in rows.values_list("name", "value"):
        try:
            found[name] = cipher.decrypt(bytes(sealed)).decode()
        except InvalidToken as exc:
            raise UnreadableSecretError(f"the secret {name} of {user} can no longer be read: set it again") from exc
    return found


def secrets_as_text(user: str) -> str:
    """The secrets of a user as their jobs get them: a JSON object, empty when they cannot be read any more."""
    try:
        return json.dumps(secrets_of(user))
    except UnreadableSecretError as exc:
        log.warning("dispatch.secrets_unreadable: %s", exc)
        return "{}"


def forget(instance: AbstractBaseUser, **_: object) -> None:
    """Delete the secrets of an account that is deleted: the next one of that name is somebody else."""
    delete_secrets(instance.get_username())


def _cipher() -> MultiFernet:
    """Encrypts with the site's key; reads what was encrypted with an older one that is still configured."""
    return MultiFernet([Fernet(_key(secret)) for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)])


def _key(secret: str | bytes) -> bytes:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"jedisite user secrets").derive(force_bytes(secret))
    return base64.urlsafe_b64encode(derived)
