from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FragmentPayloads(_message.Message):
    __slots__ = ("fragments",)
    FRAGMENTS_FIELD_NUMBER: _ClassVar[int]
    fragments: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, fragments: _Optional[_Iterable[bytes]] = ...) -> None: ...

class FragmentColumns(_message.Message):
    __slots__ = ("fragments",)
    class Files(_message.Message):
        __slots__ = ("path", "file_major_version", "file_minor_version", "file_size_bytes")
        PATH_FIELD_NUMBER: _ClassVar[int]
        FILE_MAJOR_VERSION_FIELD_NUMBER: _ClassVar[int]
        FILE_MINOR_VERSION_FIELD_NUMBER: _ClassVar[int]
        FILE_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
        path: _containers.RepeatedScalarFieldContainer[bytes]
        file_major_version: _containers.RepeatedScalarFieldContainer[int]
        file_minor_version: _containers.RepeatedScalarFieldContainer[int]
        file_size_bytes: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, path: _Optional[_Iterable[bytes]] = ..., file_major_version: _Optional[_Iterable[int]] = ..., file_minor_version: _Optional[_Iterable[int]] = ..., file_size_bytes: _Optional[_Iterable[int]] = ...) -> None: ...
    class Fragments(_message.Message):
        __slots__ = ("id", "files", "deletion_file", "physical_rows", "inline_row_ids", "external_row_ids")
        ID_FIELD_NUMBER: _ClassVar[int]
        FILES_FIELD_NUMBER: _ClassVar[int]
        DELETION_FILE_FIELD_NUMBER: _ClassVar[int]
        PHYSICAL_ROWS_FIELD_NUMBER: _ClassVar[int]
        INLINE_ROW_IDS_FIELD_NUMBER: _ClassVar[int]
        EXTERNAL_ROW_IDS_FIELD_NUMBER: _ClassVar[int]
        id: _containers.RepeatedScalarFieldContainer[int]
        files: FragmentColumns.Files
        deletion_file: _containers.RepeatedScalarFieldContainer[bytes]
        physical_rows: _containers.RepeatedScalarFieldContainer[int]
        inline_row_ids: _containers.RepeatedScalarFieldContainer[bytes]
        external_row_ids: _containers.RepeatedScalarFieldContainer[bytes]
        def __init__(self, id: _Optional[_Iterable[int]] = ..., files: _Optional[_Union[FragmentColumns.Files, _Mapping]] = ..., deletion_file: _Optional[_Iterable[bytes]] = ..., physical_rows: _Optional[_Iterable[int]] = ..., inline_row_ids: _Optional[_Iterable[bytes]] = ..., external_row_ids: _Optional[_Iterable[bytes]] = ...) -> None: ...
    FRAGMENTS_FIELD_NUMBER: _ClassVar[int]
    fragments: FragmentColumns.Fragments
    def __init__(self, fragments: _Optional[_Union[FragmentColumns.Fragments, _Mapping]] = ...) -> None: ...
