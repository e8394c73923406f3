"""Java's trust and key stores, for librdkafka: certificates as PEM, keys as PEM or PKCS#12."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tailrace._kafka.java_properties import bad_config
from tailrace._spark.java import require_java

_JKS, _JCEKS = b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"
_PASSWORD = "KAFKA_STORE_PASSWORD"  # noqa: S105  the name of a variable
_READ_WITHIN_S = 60


def trusted_certificates(location: Path, password: str | None) -> str:
    """The certificates of a trust store, as PEM; `keytool` reads every kind that Java knows."""
    if is_pem(location):
        return _read(location).decode()
    keytool = Path(require_java().command).with_name("keytool")
    command = [str(keytool) if keytool.exists() else "keytool", "-list", "-rfc", "-keystore", str(location)]
    if password:
        # Not on the command line, where every user of this machine could read it.
        command += ["-storepass:env", _PASSWORD]
    listed = subprocess.run(
        command,
        env={**os.environ, _PASSWORD: password or "", "JAVA_TOOL_OPTIONS": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=_READ_WITHIN_S,
    )
    certificates = _pem_blocks(listed.stdout)
    if listed.returncode != 0 or not certificates:
        raise bad_config(
            f"the trust store {location} cannot be read, or holds no certificate.",
            "check ssl.truststore.location and ssl.truststore.password.",
        )
    return certificates


def require_pkcs12(location: Path) -> None:
    """librdkafka reads keys from PKCS#12 files only. Newer versions of Java write those, whatever the file's name."""
    start = _read(location)[:4]
    if start in (_JKS, _JCEKS):
        raise bad_config(
            f"the key store {location} is in Java's old format JKS, which only Java can read.",
            f"convert it: keytool -importkeystore -srckeystore {location} -destkeystore {location.with_suffix('.p12')} "
            "-deststoretype PKCS12; then name the new file in ssl.keystore.location. Java reads it as well.",
        )


def is_pem(location: Path) -> bool:
    return b"-----BEGIN" in _read(location)[:65536]


def _read(location: Path) -> bytes:
    try:
        return location.read_bytes()
    except OSError as failure:
        raise bad_config(f"{location} cannot be read: {failure.strerror}.", "correct its path or its rights.") from None


def _pem_blocks(text: str) -> str:
    blocks: list[str] = []
    inside = False
    for line in text.splitlines():
        inside = inside or line.startswith("-----BEGIN")
        if inside:
            blocks.append(line)
        inside = inside and not line.startswith("-----END")
    return "".join(f"{line}\n" for line in blocks)
