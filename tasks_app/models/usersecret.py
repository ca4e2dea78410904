"""What users entrust to the site for their payloads: passwords, tokens, small files. Encrypted with the site's key."""

from __future__ import annotations

from django.db import models


class UserSecret(models.Model):
    """One secret of one user. `value` is ciphertext: `tasks_app/submission/user_secrets.py` alone reads and writes it."""

    id = models.BigAutoField(primary_key=True)
    user = models.CharField(max_length=128)
    name = models.CharField(max_length=200)
    value = models.BinaryField()
    changed = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "user_secrets"
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="user_secrets_once")]

    def __str__(self) -> str:
        return f"{self.user} {self.name}"
