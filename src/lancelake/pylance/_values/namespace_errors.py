"""Errors of namespaces: of this package's kinds and of those of the Lance namespace API.

Both have an attribute `code`; it is that of this package.
"""

from __future__ import annotations

from typing import ClassVar

import lance_namespace as api

from lancelake import errors


class MissingTable(errors.TableNotFoundError, api.TableNotFoundError):
    """A table that the namespace does not have."""

    code: ClassVar[str] = "namespace_table_not_found"  # type: ignore[misc, assignment]


class TakenTable(errors.AlreadyExistsError, api.TableAlreadyExistsError):
    """A new table whose name is taken."""

    code: ClassVar[str] = "namespace_table_exists"  # type: ignore[misc, assignment]


class MissingNamespace(errors.NotFoundError, api.NamespaceNotFoundError):
    """A namespace that does not exist."""

    code: ClassVar[str] = "namespace_not_found"  # type: ignore[misc, assignment]


class TakenNamespace(errors.AlreadyExistsError, api.NamespaceAlreadyExistsError):
    """A new namespace whose name is taken."""

    code: ClassVar[str] = "namespace_exists"  # type: ignore[misc, assignment]


class NamespaceNotEmpty(errors.InvalidRequestError, api.NamespaceNotEmptyError):
    """A namespace to drop that has tables or namespaces."""

    code: ClassVar[str] = "namespace_not_empty"  # type: ignore[misc, assignment]


class InvalidInput(errors.InvalidRequestError, api.InvalidInputError):
    """A request that cannot be understood."""

    code: ClassVar[str] = "namespace_request"  # type: ignore[misc, assignment]
