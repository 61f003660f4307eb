"""Index descriptions match official release 14.0.2."""

from __future__ import annotations

import pytest

from lancelake.errors import CorruptTableError
from lancelake.format.index_meta import IndexDetails, describe
from lancelake.proto.index_pb2 import (
    InvertedIndexDetails,
    JsonIndexDetails,
    MinHashLshIndexDetails,
    VectorIndexDetails,
)

TOKENIZER = {
    "lance_tokenizer": None,
    "base_tokenizer": "simple",
    "language": "English",
    "with_position": False,
    "max_token_length": 40,
    "lower_case": True,
    "stem": True,
    "remove_stop_words": True,
    "custom_stop_words": None,
    "ascii_folding": True,
    "min_ngram_length": 3,
    "max_ngram_length": 3,
    "prefix_only": False,
    "block_size": 128,
    "split_identifiers": False,
    "split_on_numerics": False,
    "preserve_original": False,
    "index_operators": False,
}
# As 14.0.2 wrote them.
INVERTED = "0a0673696d706c65120922456e676c6973682220282801300138014001480350036080017802"
INVERTED_CODE = "0a04636f6465120922456e676c69736822202828014001480350036080016a04100118017803"
INVERTED_FRENCH = "0a0a776869746573706163651208224672656e6368221801480350036080017802"
INVERTED_ELEMENTS = (
    "0a0673696d706c65120922456e676c69736822202828013001380140014803500360800170017802"
)
MIN_HASH = "08401008180322220a0673696d706c65120922456e676c69736822202828014001480350036080017802"
JSON_PATH = "0a03242e6112200a1e2f6c616e63652e7461626c652e4254726565496e64657844657461696c73"


def details(kind: str, value: bytes | str = b"") -> IndexDetails:
    data = bytes.fromhex(value) if isinstance(value, str) else value
    return IndexDetails(type_url=f"/lance.index.pb.{kind}IndexDetails", value=data)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("BTree", "BTree"),
        ("Bitmap", "Bitmap"),
        ("LabelList", "LabelList"),
        ("NGram", "NGram"),
        ("ZoneMap", "ZoneMap"),
        ("BloomFilter", "BloomFilter"),
        ("RTree", "RTree"),
        ("FM", "Fm"),
        ("FragmentReuse", "FragmentReuse"),
        ("MemWal", "MemWal"),
    ],
)
def test_a_kind_without_parameters_has_its_name(kind, name):
    assert describe(details(kind)) == (name, {})


def test_the_parameters_of_a_zone_map_are_not_shown():
    assert describe(details("ZoneMap", "08804010001801")) == ("ZoneMap", {})


@pytest.mark.parametrize(
    ("value", "changes"),
    [
        (INVERTED, {}),
        ("", {}),
        (
            INVERTED_CODE,
            {
                "base_tokenizer": "code",
                "stem": False,
                "remove_stop_words": False,
                "split_on_numerics": True,
                "preserve_original": True,
            },
        ),
        (
            INVERTED_FRENCH,
            {
                "base_tokenizer": "whitespace",
                "language": "French",
                "with_position": True,
                "max_token_length": None,
                "lower_case": False,
                "stem": False,
                "remove_stop_words": False,
                "ascii_folding": False,
            },
        ),
        (INVERTED_ELEMENTS, {"document_granularity": "list_element"}),
    ],
    ids=["default", "blank", "code", "french", "elements"],
)
def test_a_full_text_index_shows_its_tokenizer(value, changes):
    expected = {**TOKENIZER, "document_granularity": "row", **changes}

    assert describe(details("Inverted", value)) == ("Inverted", expected)


def test_a_language_that_is_no_json_hides_the_tokenizer():
    value = InvertedIndexDetails(base_tokenizer="simple", language="foo").SerializeToString()

    assert describe(details("Inverted", value)) == ("Inverted", {})


def test_a_min_hash_index_shows_its_sizes_and_tokenizer():
    assert describe(details("MinHashLsh", MIN_HASH)) == (
        "MinHashLsh",
        {
            "num_hashes": 64,
            "num_bands": 8,
            "shingle_size": 3,
            "tokenizer": {**TOKENIZER, "stem": False, "remove_stop_words": False},
            "signature_version": 0,
        },
    )


def test_a_min_hash_index_without_a_tokenizer_shows_nothing():
    value = MinHashLshIndexDetails(num_hashes=3).SerializeToString()

    assert describe(details("MinHashLsh", value)) == ("MinHashLsh", {})


def test_an_index_of_a_json_path_shows_path_and_target():
    assert describe(details("Json", JSON_PATH)) == ("Json", {"path": "$.a", "target_details": {}})


def test_an_index_of_a_json_path_without_a_target_shows_nothing():
    assert describe(details("Json", JsonIndexDetails(path="p").SerializeToString())) == ("Json", {})


def test_an_index_of_a_json_path_is_no_target_of_another():
    message = JsonIndexDetails(path="p")
    message.target_details.type_url = "/lance.index.pb.JsonIndexDetails"

    assert describe(details("Json", message.SerializeToString())) == ("Json", {})


@pytest.mark.parametrize(
    ("value", "name", "shown"),
    [
        ("4200", "IVF_FLAT", {"metric_type": "L2"}),
        ("08034200", "IVF_FLAT", {"metric_type": "HAMMING"}),
        (
            "0801220408081004",
            "IVF_PQ",
            {
                "metric_type": "COSINE",
                "compression": {"type": "pq", "num_bits": 8, "num_sub_vectors": 4},
            },
        ),
        (
            "080210ac02220408041004",
            "IVF_PQ",
            {
                "metric_type": "DOT",
                "target_partition_size": 300,
                "compression": {"type": "pq", "num_bits": 4, "num_sub_vectors": 4},
            },
        ),
        (
            "2a020808",
            "IVF_SQ",
            {"metric_type": "L2", "compression": {"type": "sq", "num_bits": 8}},
        ),
        (
            "32020805",
            "IVF_RQ",
            {
                "metric_type": "L2",
                "compression": {"type": "rq", "num_bits": 5, "rotation_type": "fast"},
            },
        ),
        (
            "320408011001",
            "IVF_RQ",
            {
                "metric_type": "L2",
                "compression": {"type": "rq", "num_bits": 1, "rotation_type": "matrix"},
            },
        ),
        (
            "1a06080c106318042a020808",
            "IVF_HNSW_SQ",
            {
                "metric_type": "L2",
                "hnsw": {"max_connections": 12, "construction_ef": 99, "max_level": 4},
                "compression": {"type": "sq", "num_bits": 8},
            },
        ),
        ("08074200", "IVF_FLAT", {"metric_type": "UNKNOWN"}),
    ],
)
def test_a_vector_index_shows_how_it_was_built(value, name, shown):
    assert describe(details("Vector", value)) == (name, shown)


def test_a_vector_index_shows_its_runtime_hints():
    message = VectorIndexDetails(runtime_hints={"lance.ivf.max_iters": "50"})
    message.flat.SetInParent()

    assert describe(details("Vector", message.SerializeToString()))[1]["runtime_hints"] == {
        "lance.ivf.max_iters": "50"
    }


def test_blank_details_do_not_name_the_kind_of_a_vector_index():
    assert describe(details("Vector")) == (None, {})


def test_a_kind_that_is_not_known_is_shown_by_its_url():
    assert describe(details("Wonder")) == (
        "Unknown",
        {"type_url": "/lance.index.pb.WonderIndexDetails"},
    )


def test_an_index_without_details_is_of_an_unknown_kind():
    assert describe(None) == ("Unknown", {})


def test_damaged_details_are_reported():
    with pytest.raises(CorruptTableError):
        describe(details("Vector", b"\xff\xff"))
