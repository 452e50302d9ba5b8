import copy
import hashlib
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lib.errors import FileError, FileTooLarge, UnknownFormat, UnreadableFile
from lib.results import arms
from lib.results.reading import Reading, read

TESTS = Path(__file__).resolve().parents[2]
FIXTURES = TESTS / "fixtures"
SHARED = TESTS.parent / ".." / "shared"
OFF = (FIXTURES / "vllm" / "off-c8.json").read_bytes()
TABLE = b"concurrency,arm,tok/s,ttft_ms,k\n1,off,10.5,3,\n1,eagle3,20,3,4\n8,off,50,5,\n"
WIDE = b"batch_size;baseline_tok_s;spec_tok_s;sd\n1;10,5;20,1;1\n2;11,5;22,1;1\n"


def restored(kept: bytes | None) -> str:
    assert kept is not None
    return pa.input_stream(pa.BufferReader(kept), compression="zstd").read().decode()


def guidellm() -> dict[str, Any]:
    report = json.loads((FIXTURES / "guidellm" / "k4-c8-r1.json").read_bytes())
    requests = report["benchmarks"][0]["requests"]
    requests["successful"] = requests["successful"][:2]
    return report


def vllm(name: str) -> dict[str, Any]:
    return json.loads((FIXTURES / "vllm" / f"{name}.json").read_bytes())


def test_digest_and_kept_copy_are_of_the_whole_file() -> None:
    found = read("a/b.json", OFF)
    assert found.name == "a/b.json"
    assert found.sha256 == hashlib.sha256(OFF).hexdigest()
    assert json.loads(restored(found.kept)) == json.loads(OFF)
    assert {r.source_sha256 for r in found.runs} == {found.sha256}


def test_the_name_decides_nothing() -> None:
    for name in ("x.csv", "x.parquet", "noname", "../../etc/passwd"):
        assert read(name, OFF).tool == "vllm-bench-serve"
    assert read("x.json", TABLE).tool == "table"


@pytest.mark.parametrize(
    ("data", "error", "says"),
    [
        (b"", UnreadableFile, "the file is empty"),
        (b" \n\t\n" * 3000, UnreadableFile, "the file is empty"),
        (b"<!DOCTYPE html><html></html>", UnreadableFile, "a web page or XML"),
        (b"\xef\xbb\xbf  <html><body>404</body></html>", UnreadableFile, "a web page or XML"),
        (OFF[:400], UnreadableFile, "truncated JSON, it breaks off in the value at line 1"),
        (b"[1, 2, 3]", UnknownFormat, "a list of numbers, which has no keys"),
        (b"[]", UnknownFormat, "a list of nothing"),
        (b"{}", UnknownFormat, "an object without keys"),
        (b'["a", [1]]', UnknownFormat, "a list of lists and texts"),
        (b'{"foo": 1, "bar": 2}', UnknownFormat, "the keys foo, bar; its keys can be mapped"),
        (b'[{"foo": 1}, {"bar": 2}]', UnknownFormat, "a list of 2 objects with the keys foo, bar"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), UnreadableFile, "a picture or PDF"),
        (b"\x01\x02" + bytes(range(256)), UnreadableFile, "UTF-8"),
        (b"PK\x03\x04rest", UnreadableFile, "a compressed archive; unpack it"),
        (b"\x1f\x8brest", UnreadableFile, "a compressed archive"),
        (b"PAR1rubbishPAR1", UnreadableFile, "not a whole Parquet file"),
        (b"[" * 1000 + b"]" * 1000, UnreadableFile, "nested deeper than 200 levels"),
        (b'{"a":' * 1000 + b"1" + b"}" * 1000, UnreadableFile, "nested deeper than 200 levels"),
        (b"c\0o\0n\0c\0", UnreadableFile, "NUL bytes"),
        (b"concurrency,ttft,tok/s\n,ms,tok/s\n1,2,3\n", UnknownFormat, "two header rows"),
        (b'[{"foo": 1}]', UnknownFormat, "a list of 1 object with the keys foo"),
        (b"null", UnknownFormat, "neither JSON nor a table"),
    ],
)
def test_bad_input_is_one_clear_line(data: bytes, error: type[FileError], says: str) -> None:
    with pytest.raises(error) as caught:
        read("dir/f.json", data)
    message = str(caught.value)
    assert message.startswith("dir/f.json: ")
    assert says in message
    assert "\n" not in message


def test_only_what_has_keys_can_be_mapped() -> None:
    for data, offered in ((b"[1, 2, 3]", False), (b'{"foo": 1}', True)):
        with pytest.raises(UnknownFormat) as caught:
            read("f", data)
        assert ("can be mapped" in str(caught.value)) == offered
        assert bool(caught.value.columns) == offered


def test_many_long_keys_are_shortened() -> None:
    document = {f"{'k' * 100}{n}": n for n in range(500)}
    with pytest.raises(UnknownFormat, match="and 488 more") as caught:
        read("f", json.dumps(document).encode())
    assert len(str(caught.value)) < 1000


def test_a_file_over_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTWORTH_IMPORT_MB", "0")
    with pytest.raises(FileTooLarge, match="at most 0 MB"):
        read("f", OFF)


def test_no_copy_is_kept_over_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTWORTH_KEEP_MB", "0")
    assert read("f", OFF).kept is None


def test_encodings_of_json() -> None:
    text = OFF.decode()
    for data in (text.encode("utf-16"), text.encode("utf-8-sig"), text.encode("utf-32")):
        assert read("f", data).runs[0].output_tps == 819.2


def test_a_hostile_name_is_kept_as_typed() -> None:
    name = ":red[x] ![i](http://192.0.2.9/p.png) [l](javascript:alert(1)) $x$ <img src=x onerror=y>"
    (run,) = read("f", json.dumps(json.loads(OFF) | {"model_id": name}).encode()).runs
    assert run.target == name


def planted(secret: str, text: str) -> list[tuple[str, bytes]]:
    detailed = vllm("detailed") | {
        "generated_texts": [text] * 4,
        "api_key": secret,
        "command": f"vllm bench serve --api-key {secret} --seed 1",
        "prompts": [text],
        "headers": {"Authorization": f"Bearer {secret}"},
    }
    report = guidellm()
    report["config"]["spec"]["backend"]["api_key"] = secret
    report["config"]["metadata"]["labels"] = {"token": secret, "team": "x"}
    (item,) = report["benchmarks"]
    item["config"]["backend"]["api_key"] = secret
    item["config"]["constraints"] = {"cmd": f"--api-key={secret}"}
    for request in item["requests"]["successful"]:
        request["request_args"] = json.dumps({"body": {"messages": [text]}})
        request["output"] = text
    rows = f"concurrency,arm,tok/s,api_key,prompt,note\n1,off,10,{secret},{text},--token {secret}\n"
    line = (FIXTURES / "guidellm" / "k4-c8-r1.csv").read_text()
    sheet = line.replace('""api_key"": null', f'""api_key"": ""{secret}""')
    assert secret in sheet
    return [
        ("vllm", json.dumps(detailed).encode()),
        ("guidellm", json.dumps(report).encode()),
        ("table", rows.encode()),
        ("guidellm csv", sheet.encode()),
    ]


def test_planted_secrets_prompts_and_answers_are_nowhere() -> None:
    secret, text = "pl4nted-s3cr3t-77", "tell me about the moon"
    for tool, data in planted(secret, text):
        found = read(f"{tool}.txt", data)
        everything = (
            restored(found.kept) + repr(found.runs) + repr(found.flags) + repr(found.unmatched)
        )
        assert found.runs, tool
        assert secret not in everything, tool
        assert text not in everything, tool


def test_recorded_prompts_are_not_kept() -> None:
    data = (FIXTURES / "guidellm" / "k4-c8-r1.json").read_bytes()
    kept = restored(read("r.json", data).kept)
    requests = json.loads(data)["benchmarks"][0]["requests"]["successful"]
    prompts = [json.loads(r["request_args"])["body"]["messages"][0] for r in requests]
    assert "request_args" not in kept
    for request, prompt in zip(requests, prompts, strict=True):
        assert request["output"] not in kept
        assert json.dumps(prompt)[30:60] not in kept


DOCUMENTS = [vllm("off-c8"), vllm("eagle3-c8"), vllm("detailed"), guidellm()]
TEXTS = [
    *(json.dumps(d).encode() for d in DOCUMENTS),
    (FIXTURES / "guidellm" / "k4-c8-r1.csv").read_bytes(),
    TABLE,
    WIDE,
]
ODD_VALUES: list[Any] = [
    *(None, True, -1, 0, 1e308, -1e308, 10**30, "x", "", "inf", "NaN", "12", "\0", "é" * 2000),
    *([], {}, [1, "a", None], [[]], [{}], {"a": {}}, math.nan, math.inf, 1e-320),
]
INSERTS = [
    b"NaN",
    b"{",
    b"[",
    b'"',
    b",",
    b"\n",
    b";",
    b"\0",
    b"\xff",
    b"1e999",
    b"\\",
    b"-Infinity",
]


def outcome(name: str, data: bytes) -> Reading | str:
    """The reading, or the line that refuses it; any other exception is a fault."""
    try:
        return arms.suggest(read(name, data))
    except FileError as error:
        return str(error)


def check(name: str, data: bytes) -> Reading | None:
    found = outcome(name, data)
    if isinstance(found, str):
        assert found.startswith(f"{name}: ")
        assert "\n" not in found
        assert len(found) < 1500
        return None
    assert all(run.run_id for run in found.runs)
    assert set(found.requests) <= {run.run_id for run in found.runs}
    return found


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(range(len(TEXTS))), st.data())
def test_bytes_flipped_cut_and_inserted(which: int, draw: st.DataObject) -> None:
    data = bytearray(TEXTS[which])
    for _ in range(draw.draw(st.integers(1, 6))):
        at = draw.draw(st.integers(0, len(data)))
        match draw.draw(st.sampled_from(["flip", "cut", "truncate", "insert"])):
            case "flip" if at < len(data):
                data[at] = draw.draw(st.integers(0, 255))
            case "cut":
                del data[at : at + draw.draw(st.integers(1, 60))]
            case "truncate":
                del data[at:]
            case "insert":
                data[at:at] = draw.draw(st.sampled_from(INSERTS))
    check("a/k4-c8.json", bytes(data))


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(range(len(DOCUMENTS))), st.data())
def test_keys_dropped_and_types_swapped(which: int, draw: st.DataObject) -> None:
    document = copy.deepcopy(DOCUMENTS[which])
    for _ in range(draw.draw(st.integers(1, 12))):
        node: Any = document
        while isinstance(node, (dict, list)) and node:
            keys = list(node) if isinstance(node, dict) else range(min(len(node), 3))
            key = draw.draw(st.sampled_from(keys))
            if not isinstance(node[key], (dict, list)) or draw.draw(st.integers(0, 3)) == 0:
                if draw.draw(st.booleans()):
                    del node[key]
                else:
                    node[key] = copy.deepcopy(draw.draw(st.sampled_from(ODD_VALUES)))
                break
            node = node[key]
    check("a/k4-c8.json", json.dumps(document).encode())


@pytest.mark.skipif(not SHARED.is_dir(), reason="no shared files beside the project")
def test_every_shared_file_is_read_or_refused_in_one_line() -> None:
    paths = [p for d in ("corpus", "published", "sweeps") for p in (SHARED / d).rglob("*.*")]
    found = [check(path.name, path.read_bytes()) for path in sorted(paths) if path.is_file()]
    read_tools = Counter(reading.tool for reading in found if reading)
    assert read_tools["guidellm"] == 63 + 2 + 12 + 1
    assert read_tools["vllm-bench-serve"] == 10
