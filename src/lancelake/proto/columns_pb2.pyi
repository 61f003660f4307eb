from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

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

class VersionOutline(_message.Message):
    __slots__ = ("fragments", "version", "index_section", "timestamp", "reader_feature_flags", "writer_feature_flags", "transaction_file", "writer_version")
    class Time(_message.Message):
        __slots__ = ("seconds", "nanos")
        SECONDS_FIELD_NUMBER: _ClassVar[int]
        NANOS_FIELD_NUMBER: _ClassVar[int]
        seconds: int
        nanos: int
        def __init__(self, seconds: _Optional[int] = ..., nanos: _Optional[int] = ...) -> None: ...
    FRAGMENTS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    INDEX_SECTION_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    READER_FEATURE_FLAGS_FIELD_NUMBER: _ClassVar[int]
    WRITER_FEATURE_FLAGS_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FILE_FIELD_NUMBER: _ClassVar[int]
    WRITER_VERSION_FIELD_NUMBER: _ClassVar[int]
    fragments: _containers.RepeatedScalarFieldContainer[bytes]
    version: int
    index_section: int
    timestamp: VersionOutline.Time
    reader_feature_flags: int
    writer_feature_flags: int
    transaction_file: str
    writer_version: bytes
    def __init__(self, fragments: _Optional[_Iterable[bytes]] = ..., version: _Optional[int] = ..., index_section: _Optional[int] = ..., timestamp: _Optional[_Union[VersionOutline.Time, _Mapping]] = ..., reader_feature_flags: _Optional[int] = ..., writer_feature_flags: _Optional[int] = ..., transaction_file: _Optional[str] = ..., writer_version: _Optional[bytes] = ...) -> None: ...

class IndexIds(_message.Message):
    __slots__ = ("indices",)
    class Id(_message.Message):
        __slots__ = ("uuid",)
        UUID_FIELD_NUMBER: _ClassVar[int]
        uuid: _containers.RepeatedScalarFieldContainer[bytes]
        def __init__(self, uuid: _Optional[_Iterable[bytes]] = ...) -> None: ...
    class Index(_message.Message):
        __slots__ = ("uuid",)
        UUID_FIELD_NUMBER: _ClassVar[int]
        uuid: IndexIds.Id
        def __init__(self, uuid: _Optional[_Union[IndexIds.Id, _Mapping]] = ...) -> None: ...
    INDICES_FIELD_NUMBER: _ClassVar[int]
    indices: IndexIds.Index
    def __init__(self, indices: _Optional[_Union[IndexIds.Index, _Mapping]] = ...) -> None: ...
