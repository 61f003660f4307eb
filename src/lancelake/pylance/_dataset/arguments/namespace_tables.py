"""Tables that are addressed through a namespace client."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lancelake.errors import InvalidRequestError, UnsupportedError

_TOGETHER = "Both 'namespace_client' and 'table_id' must be provided together."


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRequest:
    """Request to describe or declare a table, as clients of the Lance namespace API read it."""

    id: list[str]
    version: int | None = None
    location: str | None = None

    def model_dump(self) -> dict[str, Any]:
        """Return the values by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTable:
    """URI and storage options of a table."""

    uri: Any
    storage_options: dict[str, str] | None


def find_table(
    uri: Any,
    namespace_client: Any,
    table_id: list[str] | None,
    storage_options: dict[str, str] | None,
    *,
    mode: str | None = None,
) -> FoundTable:
    """Return the table of a URI or of a namespace; mode `create` declares the latter.

    Storage options of the namespace take precedence over those of the caller.
    """
    if namespace_client is None and table_id is None:
        if uri is None:
            problem = "Must specify either 'uri' or both 'namespace_client' and 'table_id'."
            raise InvalidRequestError(problem)
        return FoundTable(uri=uri, storage_options=storage_options)
    if uri is not None:
        problem = "Cannot specify both 'uri' and 'namespace_client/table_id'."
        raise InvalidRequestError(problem)
    if namespace_client is None or table_id is None:
        raise InvalidRequestError(_TOGETHER)
    request = TableRequest(id=list(table_id))
    is_new = mode is not None and mode.lower() == "create"
    ask = namespace_client.declare_table if is_new else namespace_client.describe_table
    answer = ask(request)
    if not answer.location:
        raise InvalidRequestError("Namespace did not return a 'location' for the table")
    if getattr(answer, "managed_versioning", None) is True:
        raise UnsupportedError("namespaces that manage the versions of tables are not supported")
    options = {**(storage_options or {}), **(answer.storage_options or {})}
    return FoundTable(uri=answer.location, storage_options=options or None)
