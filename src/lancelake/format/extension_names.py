"""Names of extension types, for modules that work without Arrow."""

from __future__ import annotations

EXTENSION_NAME = "ARROW:extension:name"
EXTENSION_METADATA = "ARROW:extension:metadata"
BFLOAT16 = "lance.bfloat16"
JSON = "lance.json"
ARROW_JSON = "arrow.json"
BLOB_V2 = "lance.blob.v2"
