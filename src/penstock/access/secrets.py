"""Encryption of secrets in the database, such as those of webhooks.

The key is the setting `secrets_key`, or a file beside a SQLite database, or a file in the user's
data folder for PostgreSQL. The file is created with the first secret.
"""

import base64
import binascii
import hashlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.config import Settings, data_folder
from penstock.errors import Conflict, Invalid, Unavailable
from penstock.private_files import make_private_folder

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

PREFIX = "fernet:"
KEY_BYTES = 32
_FINGERPRINT_CHARS = 12
_HOW = "make a key with `openssl rand -base64 32`"


class Secrets:
    """Encrypts and decrypts secrets. The first key encrypts; older ones only decrypt."""

    def __init__(self, keys: str | None, path: Path) -> None:
        self._path = path
        self._is_set = keys is not None
        self._keys: dict[str, Fernet] = {}
        self._lost = ""
        if keys is not None:
            for text in keys.split(","):
                self._add(text, "the setting secrets_key")

    def seal(self, secret: str) -> str:
        """Encrypt a secret for the database; create the key file if there is no key."""
        if not self._keys and not self._load():
            if self._lost:
                raise Conflict(
                    f"the secrets in this database are encrypted with key {self._lost}, which is "
                    f"not here: {self._advice}"
                )
            self._make()
        fingerprint, key = next(iter(self._keys.items()))
        return f"{PREFIX}{fingerprint}:{key.encrypt(secret.encode()).decode()}"

    def reveal(self, stored: str) -> str:
        """Decrypt a secret from the database."""
        from cryptography.fernet import InvalidToken

        if not is_sealed(stored):
            return stored
        fingerprint, _, token = stored.removeprefix(PREFIX).partition(":")
        if fingerprint not in self._keys:
            self._load()
        key = self._keys.get(fingerprint)
        if key is None:
            raise Conflict(
                f"the secret is encrypted with key {fingerprint}, which is not here: {self._advice}"
            )
        try:
            return key.decrypt(token.encode()).decode()
        except InvalidToken:
            raise Conflict("the stored secret was damaged; set it again") from None

    def check(self, stored: str) -> None:
        """Record whether a stored secret needs another key, so that none is created."""
        try:
            self.reveal(stored)
        except Conflict:
            self._lost = stored.removeprefix(PREFIX).partition(":")[0]
            raise

    @property
    def _advice(self) -> str:
        where = "add it to the setting secrets_key" if self._is_set else f"put it into {self._path}"
        return f"{where}, as the server that stored the secret has it, or set the secret again"

    def _load(self) -> bool:
        """Read the key file, if no setting replaces it."""
        if self._is_set:
            return True
        try:
            text = self._path.read_text()
        except FileNotFoundError:
            return False
        except (OSError, UnicodeDecodeError) as error:
            raise Unavailable(f"the key file {self._path} cannot be read: {error}") from None
        self._add(text, f"the key file {self._path}")
        return True

    def _make(self) -> None:
        """Create the key file; the first of several processes wins."""
        key = base64.urlsafe_b64encode(os.urandom(KEY_BYTES))
        folder = self._path.parent
        try:
            make_private_folder(folder)
            descriptor, name = tempfile.mkstemp(prefix=".key-", dir=folder)  # has mode 0600
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(key + b"\n")
                    file.flush()
                    os.fsync(file.fileno())
                os.link(name, self._path)
            except FileExistsError:
                pass
            finally:
                os.unlink(name)
        except OSError as error:
            raise Unavailable(
                f"the key file {self._path} cannot be made: {error}; correct that, or set "
                f"secrets_key: {_HOW}"
            ) from None
        self._load()

    def _add(self, text: str, where: str) -> None:
        from cryptography.fernet import Fernet

        try:
            key = base64.b64decode(text.strip().translate(_STANDARD), validate=True)
        except (binascii.Error, ValueError):
            key = b""
        if len(key) != KEY_BYTES:
            raise Invalid(f"{where} does not hold {KEY_BYTES} bytes in base64; {_HOW}")
        fingerprint = hashlib.sha256(key).hexdigest()[:_FINGERPRINT_CHARS]
        self._keys.setdefault(fingerprint, Fernet(base64.urlsafe_b64encode(key)))


_STANDARD = str.maketrans("-_", "+/")


def is_sealed(stored: str) -> bool:
    """Return whether a stored secret is encrypted."""
    return stored.startswith(PREFIX)


def open_secrets(settings: Settings) -> Secrets:
    """Return the secrets of the configured database."""
    scheme, _, rest = settings.database.partition("://")
    if scheme == "sqlite":
        return Secrets(settings.secrets_key, Path(f"{rest[1:]}.key").absolute())
    return Secrets(settings.secrets_key, data_folder(os.environ) / "secrets.key")
