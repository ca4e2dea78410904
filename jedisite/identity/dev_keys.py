"""The signing key of the development issuer: made at its first use, kept in JEDI_HOME, readable by its owner only."""

from __future__ import annotations

import contextlib
import json
import os
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.conf import settings
from jwt.algorithms import ECAlgorithm

from jedisite.identity.oidc_keys import SigningKey, UnknownKeyError
from jedisite.identity.oidc_settings import ROLE_NAMES, Provider

ALGORITHM = "ES256"
CLIENT = "jedisite-development"
PATH = "dev-issuer"


def is_on() -> bool:
    """Whether this site is an issuer."""
    return bool(settings.JEDI_DEV_ISSUER and settings.JEDI_SERVER_URL)


def provider() -> Provider:
    """The development issuer as a provider. Its groups are the groups of this site's own accounts."""
    vo = settings.JEDI_DEV_ISSUER
    issuer = f"{settings.JEDI_SERVER_URL}/{PATH}"
    return Provider(vo, issuer, (CLIENT,), CLIENT, roles=frozenset(ROLE_NAMES.values()), make_users=False)


def key_of(kid: str) -> SigningKey:
    """The public key of that id. Raises UnknownKeyError."""
    if kid != public_jwk()["kid"]:
        raise UnknownKeyError(kid)
    return SigningKey(private_key().public_key(), (ALGORITHM,))


def public_jwk() -> dict[str, Any]:
    """The public key as it stands in the key set."""
    key = private_key().public_key()
    digest = hashes.Hash(hashes.SHA256())
    digest.update(key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo))
    written = json.loads(ECAlgorithm.to_jwk(key))
    return {**written, "kid": digest.finalize().hex()[:16], "use": "sig", "alg": ALGORITHM}


def private_key() -> ec.EllipticCurvePrivateKey:
    """The key of this installation."""
    return _read(settings.JEDI_HOME / "dev_issuer_key.pem")


@cache
def _read(path: Path) -> ec.EllipticCurvePrivateKey:
    if not path.exists():
        _make(path)
    key = serialization.load_pem_private_key(path.read_bytes(), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError(f"{path} holds no key for {ALGORITHM}")
    return key


def _make(path: Path) -> None:
    pem = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with NamedTemporaryFile(dir=path.parent, prefix=path.name) as draft:  # readable by its owner only
        draft.write(pem)
        draft.flush()
        # Fails if another process was first: then its key is taken.
        with contextlib.suppress(FileExistsError):
            os.link(draft.name, path)
