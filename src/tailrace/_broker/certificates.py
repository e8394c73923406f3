"""A certificate authority of its own for a secured embedded broker, made on the fly."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailrace._process.paths import write_private
from tailrace._process.ports import HOST
from tailrace.errors import TailraceError

_DAY = datetime.timedelta(days=1)
_YEAR = 365 * _DAY


@dataclass(frozen=True, repr=False)
class Identity:
    """A key with its certificate."""

    key: Any
    certificate: Any


class CertificateAuthority:
    """Signs certificates for brokers and users. Its key is never written to a disk."""

    def __init__(self) -> None:
        _require_cryptography()
        self._own = _signed("tailrace test authority", None, is_authority=True)

    def write_certificate(self, file: Path) -> Path:
        """For clients: whom to trust."""
        from cryptography.hazmat.primitives.serialization import Encoding

        write_private(file, self._own.certificate.public_bytes(Encoding.PEM).decode())
        return file

    def write_trust_store(self, file: Path, password: str) -> Path:
        """The same as a PKCS#12 file that Java reads."""
        from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

        trusted = pkcs12.PKCS12Certificate(self._own.certificate, b"ca")
        return _write_private_bytes(
            file, pkcs12.serialize_java_truststore([trusted], BestAvailableEncryption(password.encode()))
        )

    def sign(self, name: str, *, expired: bool = False) -> Identity:
        """A certificate for this machine's address, with `name` as its common name."""
        return _signed(name, self._own, expired=expired)

    def write_pem(self, identity: Identity, file: Path) -> Path:
        """The key and the certificates in one file, as Kafka's clients read them."""
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        key = identity.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        chain = (identity.certificate, self._own.certificate)
        write_private(file, "".join([key.decode(), *(one.public_bytes(Encoding.PEM).decode() for one in chain)]))
        return file

    def write_key_store(self, identity: Identity, file: Path, password: str) -> Path:
        """The same as a PKCS#12 file."""
        from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

        text = pkcs12.serialize_key_and_certificates(
            b"key",
            identity.key,
            identity.certificate,
            [self._own.certificate],
            BestAvailableEncryption(password.encode()),
        )
        return _write_private_bytes(file, text)


def _signed(name: str, issuer: Identity | None, *, is_authority: bool = False, expired: bool = False) -> Identity:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(HOST))]
    signing_key = issuer.key if issuer is not None else key
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer is not None else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - (30 * _DAY if expired else _DAY))
        .not_valid_after(now - _DAY if expired else now + _YEAR)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()),
            critical=False,
        )
    )
    if not is_authority:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return Identity(key, builder.sign(signing_key, hashes.SHA256()))


def _write_private_bytes(file: Path, content: bytes) -> Path:
    write_private(file, "")
    file.write_bytes(content)
    return file


def _require_cryptography() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise TailraceError(
            "TAILRACE_EXTRA_MISSING",
            "a secured broker needs certificates, and making them needs the package cryptography.",
            'pip install "tailrace[secure]"',
        ) from None
