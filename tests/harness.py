"""Files of a made-up benchmark harness that no reader knows: nested, many leaves, lists inside."""

import io
import json
import zipfile
from collections.abc import Mapping


def document(
    clients: int, tok_s: float, variant: str = "off", extra: Mapping[str, object] | None = None
) -> bytes:
    """One run of the harness: its load, its outcome, forty knobs and a list of every reply."""
    ms = 1000 * clients / tok_s
    replies = [
        {"at_ms": 7.5 * i, "generated": 120 + i % 9, "waited_ms": 30.0 + i, "good": i % 11 != 0}
        for i in range(12)
    ]
    knobs = {f"knob_{i:02d}": i * 0.25 for i in range(40)}
    content = {
        "harness": {"name": "kettle", "release": "0.3"},
        "deployment": {"weights": "toy-8b", "variant": variant, "cards": 2, "card": "L40S"},
        "offer": {"parallel_calls": clients, "shape": {"in": 512, "out": 128}},
        "result": {
            "speed": {"generated_per_s": tok_s, "calls_per_s": tok_s / 128},
            "waits": {"first_piece": {"mid": 41.5, "high": 90.1}, "per_piece": {"mid": ms}},
        },
        "knobs": knobs,
        "replies": replies,
        **(extra or {}),
    }
    return json.dumps(content).encode()


def archive(files: Mapping[str, bytes]) -> bytes:
    """A zip of files by their paths."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(name, data)
    return out.getvalue()
