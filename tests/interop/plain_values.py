"""Values of a pylance-compatible API as JSON; runs here and inside official releases."""

import dataclasses
import datetime
import json
import re

TEXT = r'"(?:[^"\\]|\\.)*"'
BYTES = r"""b(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
PAIR = f"{TEXT}: {TEXT}"
SPECIAL = {
    "str": str,
    "_Path": str,
    "CallableStr": str,
    "bytes": bytes.hex,
    "datetime": datetime.datetime.isoformat,
    "set": sorted,
    "Bitmap": sorted,
    "list": lambda items: [plain(item) for item in items],
    "NotebookList": lambda items: [plain(item) for item in items],
    "tuple": lambda items: [plain(item) for item in items],
    "dict": lambda items: {str(key): plain(item) for key, item in items.items()},
    "RowIdMeta": lambda meta: ["RowIdMeta", *json.loads(meta.json()).values()],
    "RowDatasetVersionMeta": lambda meta: ["VersionMeta", *json.loads(meta.json()).values()],
    "DeletionFile": lambda file: {"class": "DeletionFile"} | file.asdict(),
    "LanceSchema": lambda schema: ["LanceSchema", *(field(f) for f in schema.fields())],
    "DatasetBasePath": repr,
}


def plain(value):
    """Turn a value of the face into what `json` can carry, class names included."""
    if value is None or isinstance(value, (bool, int)):
        return value
    name = type(value).__name__
    if name in SPECIAL:
        return SPECIAL[name](value)
    public = [f.name for f in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else []
    public = [n for n in public if n == "_path" or not n.startswith("_")]
    return {"class": name} | {n.lstrip("_"): plain(getattr(value, n)) for n in public}


def field(value):
    """Show a field with all below it."""
    return {
        "name": value.name(),
        "id": value.id(),
        "metadata": value.metadata,
        "arrow": str(value.to_arrow()),
        "is_key": value.is_unenforced_primary_key(),
        "key_position": value.unenforced_primary_key_position(),
        "children": [field(child) for child in value.children()],
    }


def printed(value):
    """Return the repr without what differs from run to run: addresses and the order of maps."""
    text = re.sub(r"<[\w.]*?(\w+) object at 0x[0-9a-f]+>", r"<\1>", repr(value))
    # Releases print these without their content.
    text = re.sub(rf"\b(RowIdMeta|RowDatasetVersionMeta)\({BYTES}\)", r"<\1>", text)
    text = re.sub(r"Bitmap\((\{[^}]*\})\)", r"\1", text)
    return re.sub(rf"metadata: \{{(?:{PAIR}(?:, )?)*\}}", _sorted_map, text)


def _sorted_map(match):
    return f"metadata: {{{', '.join(sorted(re.findall(PAIR, match.group())))}}}"
