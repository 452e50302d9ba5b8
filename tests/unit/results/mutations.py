"""Result files gone wrong: one change, or a few, of the kind that breaks readers."""

import io
import zipfile
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import orjson

Document = Any

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63 - 1, -(2**63), 1e308, -1e308, 5e-324, 0.1),
    *("", " ", "0", "-1", "1e999", "nan", "Infinity", "inf", "12 ms", "50 %", "1,5", "\x00", "é"),
    *("\ud800", "off", "<b>x</b>", "![i](http://h/p)", "=1+1", "x" * 3000, "2026-13-45T99:00:00Z"),
    *([], {}, [[]], [{}], [None], {"": None}, [1, "a", None, {}], {"mean": "x"}, {"value": []}),
)
LITERALS = (b"NaN", b"Infinity", b"-Infinity", b"1e999", b"9" * 400, b"-0", b"1e-999", b"01")
ENCODINGS = ("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "cp1252", "utf-7")


def mutated(data: bytes, random: Random) -> bytes:
    """The file with one to four changes."""
    for _ in range(random.randint(1, 4)):
        data = random.choice((in_structure, in_structure, in_bytes, in_text))(data, random)
    return data


def in_structure(data: bytes, random: Random) -> bytes:
    """JSON with a key dropped, a value of another type, deep, repeated; other text unchanged."""
    lines = data.splitlines() if data.count(b"\n") and not data.startswith((b"{\n", b"[")) else []
    try:
        document = [orjson.loads(x) for x in lines if x] if len(lines) > 1 else orjson.loads(data)
    except orjson.JSONDecodeError:
        return data
    places = list(_places(document)) if isinstance(document, (dict, list)) else []
    if not places:
        return data
    for _ in range(random.choice((1, 1, 1, 3, 10))):
        holder, key = random.choice(places)
        try:
            random.choice(STRUCTURAL)(holder, key, random)
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took the place away
    try:
        written = [_dumped(x) for x in document] if len(lines) > 1 else [_dumped(document)]
    except (TypeError, RecursionError):
        return data
    return b"\n".join(written)


def _dumped(document: Document) -> bytes:
    return _nested(orjson.dumps(document, default=str) if _plain(document) else b"null")


def _plain(document: Document) -> bool:
    try:
        orjson.dumps(document)
    except (TypeError, orjson.JSONEncodeError):
        return False
    return True


DEEP = "deep below"


def _nested(data: bytes) -> bytes:
    return data.replace(b'"%s"' % DEEP.encode(), b"[" * 1000 + b"]" * 1000)


def _places(document: Document, most: int = 4000) -> Iterator[tuple[Any, Any]]:
    """Every place in a document, containers first come first served."""
    waiting, count = [document], 0
    while waiting and count < most:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            count += 1
            yield holder, key
            if isinstance(holder[key], (dict, list)):
                waiting.append(holder[key])


def _drop(holder: Any, key: Any, random: Random) -> None:
    del holder[key]


def _odd(holder: Any, key: Any, random: Random) -> None:
    holder[key] = random.choice([x for x in ODD if x != "\ud800"])


def _as_text(holder: Any, key: Any, random: Random) -> None:
    if isinstance(holder[key], (int, float)):
        holder[key] = random.choice(("{}", "{} ms", "~{}", "{},5", " {} ")).format(holder[key])


def _scaled(holder: Any, key: Any, random: Random) -> None:
    if isinstance(holder[key], (int, float)):
        holder[key] = holder[key] * random.choice((-1, 0, 1e3, 1e-3, 1e18, -1e18))


def _wrapped(holder: Any, key: Any, random: Random) -> None:
    holder[key] = random.choice(([holder[key]], {"value": holder[key]}, {"x": {"y": holder[key]}}))


def _deep(holder: Any, key: Any, random: Random) -> None:
    holder[key] = DEEP


def _grown(holder: Any, key: Any, random: Random) -> None:
    if isinstance(holder[key], list):
        holder[key] = holder[key] * 3 + [random.choice(ODD[:13])]


def _cut(holder: Any, key: Any, random: Random) -> None:
    if isinstance(holder[key], list):
        del holder[key][random.randint(0, len(holder[key])) :]


def _swapped(holder: Any, key: Any, random: Random) -> None:
    other = random.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    holder[key], holder[other] = holder[other], holder[key]


STRUCTURAL: tuple[Callable[[Any, Any, Random], None], ...] = (
    *(_drop, _odd, _odd, _odd, _as_text, _scaled, _wrapped, _deep, _grown, _cut, _swapped),
)


def in_bytes(data: bytes, random: Random) -> bytes:
    """Bytes flipped, cut, repeated or inserted."""
    if not data:
        return data
    at = random.randrange(len(data))
    kind = random.randrange(6)
    if kind == 0:
        return data[:at] + bytes([random.randrange(256)]) + data[at + 1 :]
    if kind == 1:
        return data[:at]
    if kind == 2:
        return data + data
    if kind == 3:
        return (
            data[:at]
            + random.choice((b"\x00", b"\xff\xfe", b"\n", b'"', b"{", b"]", b","))
            + data[at:]
        )
    if kind == 4:
        end = min(len(data), at + random.randint(1, 200))
        return data[:at] + data[end:]
    return data[:at] + data[at : at + 200] * 50 + data[at:]


def in_text(data: bytes, random: Random) -> bytes:
    """Another encoding, a mark before it, a literal that JSON does not know, mixed encodings."""
    kind = random.randrange(4)
    if kind == 0:
        try:
            return data.decode().encode(random.choice(ENCODINGS), "replace")
        except UnicodeDecodeError:
            return data
    if kind == 1:
        return random.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\n\n  ", b"#", b"---\n")) + data
    if kind == 2:
        numbers = [i for i, byte in enumerate(data[:20_000]) if 48 <= byte <= 57]
        if not numbers:
            return data
        at = random.choice(numbers)
        return data[:at] + random.choice(LITERALS) + data[at + 1 :]
    return data + "\nÄ €".encode("cp1252")


def zipped(data: bytes, random: Random) -> bytes:
    """An archive of the file, and what is wrong with it."""
    names = (
        "a.json",
        "../../up.json",
        "/abs.json",
        "a\\b.json",
        "x" * 300,
        "\x1b[2J.json",
        "k4/c8.json",
    )
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in random.sample(names, random.randint(1, 4)):
            archive.writestr(
                name, random.choice((data, bytes(3 * 2**20), b"", mutated(data, random)))
            )
    packed = sink.getvalue()
    return packed if random.random() < 0.3 else in_bytes(packed, random)
