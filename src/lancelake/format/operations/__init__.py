"""Operations of a transaction: the closed union `Operation` and its codec."""

from __future__ import annotations

from typing import Any, assert_never

from google.protobuf.unknown_fields import UnknownFieldSet

from lancelake.format.frozen import unknown_bytes
from lancelake.format.operations import (
    append,
    clone,
    create_index,
    data_replacement,
    delete,
    merge,
    overwrite,
    project,
    reserve_fragments,
    restore,
    rewrite,
    update,
    update_bases,
    update_config,
    update_mem_wal_state,
)
from lancelake.format.operations.append import Append
from lancelake.format.operations.clone import Clone
from lancelake.format.operations.create_index import CreateIndex
from lancelake.format.operations.data_replacement import DataReplacement
from lancelake.format.operations.delete import Delete
from lancelake.format.operations.merge import Merge
from lancelake.format.operations.overwrite import Overwrite
from lancelake.format.operations.project import Project
from lancelake.format.operations.reserve_fragments import ReserveFragments
from lancelake.format.operations.restore import Restore
from lancelake.format.operations.rewrite import Rewrite
from lancelake.format.operations.unknown import UnknownOperation
from lancelake.format.operations.update import Update
from lancelake.format.operations.update_bases import UpdateBases
from lancelake.format.operations.update_config import UpdateConfig
from lancelake.format.operations.update_mem_wal_state import UpdateMemWalState
from lancelake.proto.transaction_pb2 import Transaction

Operation = (
    Append
    | Clone
    | CreateIndex
    | DataReplacement
    | Delete
    | Merge
    | Overwrite
    | Project
    | ReserveFragments
    | Restore
    | Rewrite
    | Update
    | UpdateBases
    | UpdateConfig
    | UpdateMemWalState
    | UnknownOperation
)

FIRST_OPERATION_TAG = 100

_DECODERS: dict[str, Any] = {  # each decodes the message of its oneof case
    "append": append.decode,
    "delete": delete.decode,
    "overwrite": overwrite.decode,
    "create_index": create_index.decode,
    "rewrite": rewrite.decode,
    "merge": merge.decode,
    "restore": restore.decode,
    "reserve_fragments": reserve_fragments.decode,
    "update": update.decode,
    "project": project.decode,
    "update_config": update_config.decode,
    "data_replacement": data_replacement.decode,
    "update_mem_wal_state": update_mem_wal_state.decode,
    "clone": clone.decode,
    "update_bases": update_bases.decode,
}


def decode(message: Transaction) -> Operation:
    """Decode the operation of a transaction; an unknown one is kept as bytes."""
    case = message.WhichOneof("operation")
    if case is not None:
        operation: Operation = _DECODERS[case](getattr(message, case))
        return operation
    strangers = UnknownFieldSet(message)
    tags = [strangers[i].field_number for i in range(len(strangers))]
    tag = next((t for t in tags if t >= FIRST_OPERATION_TAG), 0)
    return UnknownOperation(tag=tag, data=unknown_bytes(message))


def encode_into(message: Transaction, operation: Operation) -> None:  # noqa: C901  # one case per operation
    """Encode an operation into a transaction."""
    match operation:
        case Append():
            message.append.CopyFrom(append.encode(operation))
        case Delete():
            message.delete.CopyFrom(delete.encode(operation))
        case Overwrite():
            message.overwrite.CopyFrom(overwrite.encode(operation))
        case CreateIndex():
            message.create_index.CopyFrom(create_index.encode(operation))
        case Rewrite():
            message.rewrite.CopyFrom(rewrite.encode(operation))
        case Merge():
            message.merge.CopyFrom(merge.encode(operation))
        case Restore():
            message.restore.CopyFrom(restore.encode(operation))
        case ReserveFragments():
            message.reserve_fragments.CopyFrom(reserve_fragments.encode(operation))
        case Update():
            message.update.CopyFrom(update.encode(operation))
        case Project():
            message.project.CopyFrom(project.encode(operation))
        case UpdateConfig():
            message.update_config.CopyFrom(update_config.encode(operation))
        case DataReplacement():
            message.data_replacement.CopyFrom(data_replacement.encode(operation))
        case UpdateMemWalState():
            message.update_mem_wal_state.CopyFrom(update_mem_wal_state.encode(operation))
        case Clone():
            message.clone.CopyFrom(clone.encode(operation))
        case UpdateBases():
            message.update_bases.CopyFrom(update_bases.encode(operation))
        case UnknownOperation():
            message.MergeFromString(operation.data)
        case _:
            assert_never(operation)


__all__ = [
    "FIRST_OPERATION_TAG",
    "Append",
    "Clone",
    "CreateIndex",
    "DataReplacement",
    "Delete",
    "Merge",
    "Operation",
    "Overwrite",
    "Project",
    "ReserveFragments",
    "Restore",
    "Rewrite",
    "UnknownOperation",
    "Update",
    "UpdateBases",
    "UpdateConfig",
    "UpdateMemWalState",
    "decode",
    "encode_into",
]
