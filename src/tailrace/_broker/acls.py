"""Grants and takes back rights on a cluster, as its administrator."""

from __future__ import annotations

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from tailrace._broker.admin import SILENT
from tailrace._kafka.cluster import Servers, client_settings
from tailrace._kafka.refusals import refusal_of
from tailrace.errors import ConfigurationError

_KINDS = {"topic": "TOPIC", "group": "GROUP", "transactional-id": "TRANSACTIONAL_ID", "cluster": "BROKER"}


def grant(admin: Servers, user: str, operation: str, kind: str, name: str) -> None:
    """Let a user do this; a name with `*` at its end is a prefix."""
    _change(admin, user, operation, kind, name, grants=True)


def revoke(admin: Servers, user: str, operation: str, kind: str, name: str) -> None:
    """Take back what was granted with the same words."""
    _change(admin, user, operation, kind, name, grants=False)


def _change(servers: Servers, user: str, operation: str, kind: str, name: str, *, grants: bool) -> None:
    if kind not in _KINDS or not hasattr(AclOperation, operation.upper()):
        raise ConfigurationError(
            "TAILRACE_BAD_ARGUMENT",
            f"there is no right to '{operation}' a '{kind}'.",
            f"name a kind of {', '.join(_KINDS)}, and an operation such as read, write or describe.",
        )
    prefixed = name.endswith("*") and len(name) > 1
    described = (
        getattr(ResourceType, _KINDS[kind]),
        "kafka-cluster" if kind == "cluster" else name[:-1] if prefixed else name,
        ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        getattr(AclOperation, operation.upper()),
        AclPermissionType.ALLOW,
    )
    client = AdminClient(client_settings(servers, {"log_level": 0}), logger=SILENT)
    answers = (
        client.create_acls([AclBinding(*described)]) if grants else client.delete_acls([AclBindingFilter(*described)])
    )
    for answer in answers.values():
        try:
            answer.result(timeout=30)
        except KafkaException as failure:
            raise refusal_of(failure, servers, operation="Alter") or failure from None
