"""Manifest files of official releases, including old ones."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from lancelake.errors import CorruptTableError, UnsupportedError
from lancelake.format.fragment import FileVersion
from lancelake.format.ids import Version
from lancelake.format.manifest import Manifest, WriterVersion, decode_manifest, encode_manifest
from lancelake.format.schema import Schema
from lancelake.proto import table_pb2
from lancelake.proto.transaction_pb2 import Transaction
from tests.unit.format.golden.files import RELEASES, STEPS, manifest, read

PLAIN = Manifest(
    schema=Schema(fields=()),
    fragments=(),
    version=Version(5),
    data_version=FileVersion.V2_1,
    writer_version=WriterVersion(library="lancelake", version="1.2.3"),
)
POSITIONS = ("index_section", "transaction_section", "transaction_section_v14")


def framed(message: table_pb2.Manifest, *, before: bytes = b"", footer: tuple[int, int] = (0, 2)):
    body = message.SerializeToString()
    tail = struct.pack("<qHH4s", len(before), *footer, b"LANC")
    return before + struct.pack("<I", len(body)) + body + tail


def decoded(message: table_pb2.Manifest, **options: object) -> Manifest:
    return decode_manifest(framed(message, **options)).manifest


def message_of(data: bytes) -> table_pb2.Manifest:
    (position,) = struct.unpack_from("<q", data, len(data) - 16)
    return table_pb2.Manifest.FromString(data[position + 4 : -16])


def file_of(*versions: tuple[int, int]) -> table_pb2.Manifest:
    files = [
        table_pb2.DataFile(path="p", file_major_version=a, file_minor_version=b)
        for a, b in versions
    ]
    return table_pb2.Manifest(fragments=[table_pb2.DataFragment(id=0, files=files)])


class TestOfficialBytes:
    @pytest.mark.parametrize("step", STEPS)
    @pytest.mark.parametrize("release", RELEASES)
    def test_a_manifest_is_written_with_the_fields_it_had(self, release, step):
        data = read(release, f"{step}.manifest")
        before = message_of(data)
        after = message_of(encode_manifest(decode_manifest(data).manifest))
        for position in POSITIONS:
            before.ClearField(position)

        assert after == before

    @pytest.mark.parametrize("step", STEPS)
    @pytest.mark.parametrize("release", RELEASES)
    def test_the_inline_transaction_is_that_of_the_file(self, release, step):
        inline = manifest(release, step).inline_transaction
        assert inline is not None

        assert Transaction.FromString(inline) == Transaction.FromString(
            read(release, f"{step}.txn")
        )

    @pytest.mark.parametrize("release", RELEASES)
    def test_the_writer_says_who_it_was(self, release):
        assert manifest(release, "create").manifest.writer_version == WriterVersion(
            library="lance", version=release
        )

    @pytest.mark.parametrize("release", RELEASES)
    def test_deletion_files_set_flag_1(self, release):
        found = manifest(release, "delete").manifest

        assert (found.reader_feature_flags, found.writer_feature_flags) == (1, 1)

    @pytest.mark.parametrize("release", RELEASES)
    def test_config_sets_flag_8_for_writers(self, release):
        found = manifest(release, "update_config").manifest

        assert (found.reader_feature_flags, found.writer_feature_flags) == (1, 9)

    @pytest.mark.parametrize("release", RELEASES)
    def test_stable_row_ids_set_flag_2(self, release):
        found = manifest(release, "stable_create").manifest

        assert (found.reader_feature_flags, found.writer_feature_flags) == (2, 2)

    @pytest.mark.parametrize("release", RELEASES)
    def test_the_next_row_id_follows_the_rows(self, release):
        assert manifest(release, "stable_append").manifest.next_row_id == 120

    @pytest.mark.parametrize("release", RELEASES)
    def test_the_highest_fragment_id_is_kept(self, release):
        assert manifest(release, "overwrite").manifest.max_fragment_id == {
            "4.0.2": 3,
            "14.0.2": 4,
        }.get(release)

    @pytest.mark.parametrize("release", RELEASES)
    def test_a_file_is_framed_as_official_releases_frame_it(self, release):
        data = read(release, "create.manifest")
        found = decode_manifest(data)
        written = encode_manifest(found.manifest, transaction=found.inline_transaction)
        assert found.inline_transaction is not None
        start = 4 + len(found.inline_transaction)

        assert (written[:start], written[-16:]) == (data[:start], data[-16:])


class TestFraming:
    @pytest.mark.parametrize("footer", [(0, 1), (0, 2), (7, 7)])
    def test_the_version_in_the_footer_does_not_matter(self, footer):
        assert decoded(table_pb2.Manifest(version=4), footer=footer).version == 4

    def test_any_bytes_may_precede_the_manifest(self):
        assert decoded(table_pb2.Manifest(version=4), before=b"\xff" * 33).version == 4

    def test_a_section_at_0_is_read(self):
        data = encode_manifest(PLAIN, index_section=b"abc")

        assert decode_manifest(data).index_section == b"abc"

    def test_an_empty_section_is_a_section(self):
        data = encode_manifest(PLAIN, index_section=b"")

        assert decode_manifest(data).index_section == b""

    def test_no_section_is_none(self):
        found = decode_manifest(encode_manifest(PLAIN))

        assert (found.index_section, found.inline_transaction) == (None, None)

    def test_the_index_section_comes_before_the_transaction(self):
        message = message_of(encode_manifest(PLAIN, index_section=b"abc", transaction=b"t"))

        assert (message.index_section, message.transaction_section) == (0, 7)

    def test_positions_are_never_carried_over(self):
        data = encode_manifest(PLAIN, index_section=b"abc", transaction=b"t")
        again = message_of(encode_manifest(decode_manifest(data).manifest))

        assert not any(again.HasField(position) for position in POSITIONS)

    def test_the_transaction_is_found_where_the_14_line_puts_it(self):
        section = struct.pack("<I", 3) + b"txn"
        message = table_pb2.Manifest(transaction_section_v14=0)

        assert decode_manifest(framed(message, before=section)).inline_transaction == b"txn"

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"LANC",
            encode_manifest(PLAIN)[:-1] + b"X",
            b"x" + encode_manifest(PLAIN),
            encode_manifest(PLAIN)[1:],
            encode_manifest(PLAIN)[:-16] + struct.pack("<qHH4s", -1, 0, 2, b"LANC"),
            encode_manifest(PLAIN)[:-16] + struct.pack("<qHH4s", 1 << 60, 0, 2, b"LANC"),
        ],
    )
    def test_a_file_that_does_not_add_up_is_damage(self, data):
        with pytest.raises(CorruptTableError):
            decode_manifest(data)

    @pytest.mark.parametrize("position", POSITIONS)
    def test_a_section_outside_the_file_is_damage(self, position):
        with pytest.raises(CorruptTableError):
            decoded(table_pb2.Manifest(**{position: 1 << 63}))

    def test_a_section_that_reaches_past_the_file_is_damage(self):
        with pytest.raises(CorruptTableError):
            decoded(table_pb2.Manifest(index_section=0), before=struct.pack("<I", 1 << 31))


class TestMeaning:
    def test_the_number_inside_is_the_version(self):
        assert decoded(table_pb2.Manifest(version=7)).version == 7

    @pytest.mark.parametrize("flags", [64, 1 << 40])
    def test_a_flag_that_is_not_known_is_refused(self, flags):
        with pytest.raises(UnsupportedError):
            decoded(table_pb2.Manifest(reader_feature_flags=flags))

    def test_a_writer_flag_that_is_not_known_does_not_hinder_reading(self):
        assert decoded(table_pb2.Manifest(writer_feature_flags=64)).writer_feature_flags == 64

    def test_stable_row_ids_without_ids_are_damage(self):
        message = file_of((2, 0))
        message.reader_feature_flags = 2

        with pytest.raises(CorruptTableError):
            decoded(message)

    def test_without_a_writer_version_counts_are_not_trusted(self):
        message = table_pb2.Manifest(fragments=[table_pb2.DataFragment(id=0, physical_rows=90)])

        assert decoded(message).fragments[0].physical_rows is None

    def test_with_a_writer_version_counts_are_trusted(self):
        message = table_pb2.Manifest(fragments=[table_pb2.DataFragment(id=0, physical_rows=90)])
        message.writer_version.library = "lance"

        assert decoded(message).fragments[0].physical_rows == 90

    def test_the_highest_fragment_id_may_have_to_be_found(self):
        fragments = [table_pb2.DataFragment(id=i) for i in (4, 9, 2)]

        assert decoded(table_pb2.Manifest(fragments=fragments)).max_fragment_id == 9

    def test_a_table_that_never_had_fragments_has_no_highest_id(self):
        assert decoded(table_pb2.Manifest()).max_fragment_id is None

    def test_a_fragment_id_that_no_address_can_hold_is_damage(self):
        with pytest.raises(CorruptTableError):
            decoded(table_pb2.Manifest(fragments=[table_pb2.DataFragment(id=1 << 40)]))

    @pytest.mark.parametrize(
        ("message", "version"),
        [
            (table_pb2.Manifest(), FileVersion.LEGACY),
            (table_pb2.Manifest(writer_feature_flags=4), FileVersion.V2_0),
            (file_of((0, 2)), FileVersion.LEGACY),
            (file_of((0, 0), (0, 2)), FileVersion.LEGACY),
            (file_of((0, 3)), FileVersion.V2_0),
            (file_of((0, 3), (2, 0)), FileVersion.V2_0),
        ],
        ids=["nothing", "flag", "legacy", "both legacy", "0.3", "0.3 and 2.0"],
    )
    def test_a_table_that_does_not_name_its_file_version_has_that_of_its_files(
        self, message, version
    ):
        assert decoded(message).data_version is version

    def test_files_of_two_versions_are_damage_when_the_table_names_none(self):
        with pytest.raises(CorruptTableError):
            decoded(file_of((0, 2), (2, 0)))

    def test_a_file_version_that_is_not_known_is_refused(self):
        message = table_pb2.Manifest()
        message.data_format.version = "9.9"

        with pytest.raises(UnsupportedError):
            decoded(message)

    @pytest.mark.parametrize("seconds", [-62_135_596_800, 0, 253_402_300_799])
    def test_a_timestamp_within_the_calendar_is_read(self, seconds):
        message = table_pb2.Manifest()
        message.timestamp.seconds = seconds

        found = decoded(message).timestamp
        assert found is not None
        assert int(found.timestamp()) == seconds

    @pytest.mark.parametrize(
        ("seconds", "nanos"), [(1 << 60, 0), (-(1 << 60), 0), (0, -1), (0, 1_000_000_000)]
    )
    def test_a_timestamp_outside_the_calendar_is_damage(self, seconds, nanos):
        message = table_pb2.Manifest()
        message.timestamp.seconds, message.timestamp.nanos = seconds, nanos

        with pytest.raises(CorruptTableError):
            decoded(message)

    def test_a_timestamp_before_the_epoch_is_kept(self):
        early = replace(PLAIN, timestamp_ns=-1)

        assert decode_manifest(encode_manifest(early)).manifest == early


def test_a_small_manifest_that_is_read_again_is_not_decoded_again() -> None:
    data = framed(table_pb2.Manifest(version=7))
    assert decode_manifest(data) is decode_manifest(bytes(bytearray(data)))


def test_a_damaged_manifest_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(CorruptTableError):
            decode_manifest(framed(table_pb2.Manifest(version=7))[:-1])


def test_versions_with_the_same_fragment_share_it() -> None:
    first, second = (
        table_pb2.Manifest(
            version=version,
            writer_version=table_pb2.Manifest.WriterVersion(library="w", version="1.0.0"),
            fragments=[table_pb2.DataFragment(id=0, physical_rows=3)],
        )
        for version in (1, 2)
    )
    assert decoded(first).fragments[0] is decoded(second).fragments[0]
