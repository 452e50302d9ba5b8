import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from lib.errors import UnknownFormat
from lib.results.reading import read
from lib.results.tools import llama_bench
from lib.run import LoadKind, SpecState

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus" / "llama-bench"
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="no shared corpus beside the project")


def row(**changed: Any) -> dict[str, Any]:
    return {
        "build_commit": "0a1b2c3d",
        "build_number": 5000,
        "cpu_info": "a CPU",
        "gpu_info": "NVIDIA L4",
        "model_filename": "/home/someone/models/target-7b.Q4_0.gguf",
        "model_type": "target 7B Q4_0",
        "n_threads": 8,
        "n_gpu_layers": 99,
        "n_prompt": 0,
        "n_gen": 128,
        "test_time": "2026-01-11T09:49:18Z",
        "avg_ns": 3_200_000_000,
        "stddev_ns": 1_000_000,
        "avg_ts": 40.01,
        "stddev_ts": 0.5,
        "samples_ns": [3_200_000_000],
        "samples_ts": [40.0],
    } | changed


PROMPT = row(n_prompt=512, n_gen=0, avg_ts=900.0)
MIXED = row(n_prompt=512, n_gen=128)


def as_csv(rows: list[dict[str, Any]]) -> bytes:
    """As the tool writes it: every value quoted, no samples."""
    out = io.StringIO()
    names = [n for n in rows[0] if not n.startswith("samples_")]
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow(names)
    writer.writerows([r[n] for n in names] for r in rows)
    return out.getvalue().encode()


def test_a_decode_row() -> None:
    found = read("b.json", json.dumps([PROMPT, row(), MIXED]).encode())
    (run,) = found.runs
    assert run.tpot_ms_mean == 25.0, "3.2 s for 128 tokens"
    assert run.output_tps is None, "a decode rate is not what a deployment serves"
    assert (run.load_kind, run.offered_load) == (LoadKind.BATCH, 1.0)
    assert run.spec_state is SpecState.OFF, "the tool cannot speculate"
    assert (run.target, run.build, run.gpu) == ("target-7b.Q4_0.gguf", "0a1b2c3d", "NVIDIA L4")
    assert (run.engine, run.engine_version, run.output_len) == ("llama.cpp", "5000", 128.0)
    assert run.started_at is not None
    assert run.started_at.isoformat() == "2026-01-11T09:49:18+00:00"
    assert run.zone_known
    (flag,) = (f for f in found.flags if f.code == "decode_only")
    assert "2 other rows left out" in flag.message
    assert "someone" not in (run.extra or ""), "a path is a machine's"
    assert {k.field for k in found.keys} >= {"tpot_ms_mean", "target"}


def test_the_csv_and_json_lines_are_the_same_run() -> None:
    rows = [PROMPT, row()]
    (of_json,) = read("b.json", json.dumps(rows).encode()).runs
    (of_lines,) = read("b.jsonl", b"\n".join(json.dumps(r).encode() for r in rows)).runs
    (of_csv,) = read("b.csv", as_csv(rows)).runs
    assert of_json.run_id == of_lines.run_id == of_csv.run_id
    assert of_csv.tpot_ms_mean == of_json.tpot_ms_mean
    assert of_csv.target == of_json.target


def test_a_rate_alone() -> None:
    document = row()
    del document["avg_ns"]
    (run,) = read("b.json", json.dumps([document]).encode()).runs
    assert run.tpot_ms_mean == pytest.approx(1000 / 40.01)


def test_prompt_rows_alone_are_no_run() -> None:
    found = read("b.json", json.dumps([PROMPT]).encode())
    assert found.runs == ()
    assert [f.code for f in found.flags] == ["not_a_run"]


def test_an_empty_gpu_and_another_run_of_the_same_model() -> None:
    rows = [row(gpu_info=""), row(test_time="2026-01-11T10:00:00Z"), row(gpu_info="")]
    found = read("b.json", json.dumps(rows).encode())
    assert len(found.runs) == 2
    assert found.runs[0].gpu is None
    assert "repeated_in_file" in {f.code for f in found.flags}


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (
            "CREATE TABLE IF NOT EXISTS test (\n  build_commit TEXT,\n  n_gen INTEGER\n);\n",
            "SQL",
        ),
        ("INSERT INTO test (build_commit, build_number) VALUES ('a', '1');\n", "SQL"),
        (
            "| model | size | params | backend | ngl | test | t/s |\n"
            "| --- | ---: | ---: | --- | --: | ---: | ---: |\n"
            "| llama 7B | 3.56 GiB | 6.74 B | CUDA | 99 | tg128 | 40.00 ± 0.10 |\n",
            "Markdown",
        ),
    ],
)
def test_sql_and_markdown_are_refused_with_the_way_out(text: str, form: str) -> None:
    with pytest.raises(UnknownFormat, match=f"llama-bench's {form}.*-o json"):
        read("b.txt", text.encode())


def test_other_files_are_not_claimed() -> None:
    assert not llama_bench.recognise([{"n_prompt": 1, "n_gen": 2}])
    assert not llama_bench.recognise([[]])
    assert not llama_bench.recognise_rows([["n_prompt", "n_gen"]])
    assert not llama_bench.recognise_rows([])


@needs_corpus
def test_the_corpus() -> None:
    (run,) = read("b.json", (CORPUS / "results-nps1.json").read_bytes()).runs
    assert run.tpot_ms_mean == pytest.approx(3354507738 / 128 / 1e6)
    assert run.tpot_ms_mean == pytest.approx(1000 / 38.210778, rel=0.002)
    assert (run.gpu, run.output_tps) == (None, None)
    (other,) = read("b.json", (CORPUS / "results-nps4-srat-l3.json").read_bytes()).runs
    assert other.run_id != run.run_id
