import io
import json
import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lib.errors import InputError, UnknownFormat, UnreadableFile
from lib.results.findings import Column
from lib.results.reading import Reading, read
from lib.run import LoadKind, Run, SpecState

PUBLISHED = Path(__file__).resolve().parents[4] / "shared" / "published"
CORPUS = PUBLISHED.parent / "corpus"


def table(text: str, mapping: dict[str, str] | None = None) -> Reading:
    return read("t.csv", text.encode(), mapping)


def arms(reading: Reading) -> list[tuple[str | None, float | None, float | None]]:
    return [(r.arm, r.offered_load, r.output_tps) for r in reading.runs]


def codes(reading: Reading) -> dict[str, str]:
    return {f.code: f.message for f in reading.flags}


LONG = """Concurrency,Arm,Throughput (tok/s),TPOT_s,TTFT p99 [ms],GPU,tp,$/h,note
1,off,100.5,0.010,25,H100,2,3.5,first
1,EAGLE-3 k=4,180,0.006,30,H100,2,3.5,
8,off,600,0.012,40,H100,2,3.5,
8,EAGLE-3 k=4,650,0.011,60,H100,2,3.5,
"""


def test_one_row_a_run() -> None:
    found = table(LONG)
    assert (found.tool, found.tool_version) == ("table", "one row a run")
    assert arms(found) == [
        ("off", 1, 100.5), ("eagle3:4", 1, 180), ("off", 8, 600), ("eagle3:4", 8, 650),
    ]  # fmt: skip
    run = found.runs[0]
    assert run.load_kind is LoadKind.CONCURRENCY
    assert (run.tpot_ms_mean, run.ttft_ms_p99) == (10.0, 25.0)
    assert (run.gpu, run.tensor_parallel, run.usd_per_hour) == ("H100", 2, 3.5)
    assert run.label == "off"
    assert json.loads(run.extra or "") == {"note": "first"}
    assert found.unmatched == (Column("note", ("first",)),)
    assert found.flags == ()


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        ("concurrency", LoadKind.CONCURRENCY),
        ("batch size", LoadKind.BATCH),
        ("qps", LoadKind.REQUEST_RATE),
    ],
)
def test_kinds_of_load(header: str, kind: LoadKind) -> None:
    (run,) = table(f"{header},tok/s\n2,10\n").runs
    assert (run.load_kind, run.offered_load) == (kind, 2.0)


def test_a_finite_rate_is_the_load_else_the_concurrency() -> None:
    text = "request_rate,max_concurrency,tok/s\n2.5,64,10\ninf,8,20\ninf,,30\n,,40\n"
    found = table(text)
    assert [(r.load_kind, r.offered_load) for r in found.runs] == [
        (LoadKind.REQUEST_RATE, 2.5),
        (LoadKind.CONCURRENCY, 8.0),
        (LoadKind.REQUEST_RATE, math.inf),
    ]
    assert "1 without a load" in codes(found)["rows_left_out"]


def test_a_column_for_each_arm() -> None:
    found = table(
        "concurrency,baseline_tok_s,mtp2_tok_s,mtp3_tok_s,gpu\n1,10,20,25,L4\n8,80,,90,L4\n"
    )
    assert found.tool_version == "one row a load"
    assert arms(found) == [
        ("off", 1, 10), ("mtp:2", 1, 20), ("mtp:3", 1, 25), ("off", 8, 80), ("mtp:3", 8, 90),
    ]  # fmt: skip
    assert {r.gpu for r in found.runs} == {"L4"}


def test_spread_and_repeats_of_a_published_mean() -> None:
    found = table(
        "concurrency,nospec_tok_s,nospec_sd,spec_tok_s,spec_sd,repeats\n1,109.7,0.57,30.6,0.14,3\n"
    )
    off, on = found.runs
    assert (off.output_tps, off.output_tps_sd, off.output_tps_n) == (109.7, 0.57, 3)
    assert (on.output_tps, on.output_tps_sd, on.output_tps_n) == (30.6, 0.14, 3)
    assert on.arm == "speculation"


def test_k_is_of_the_arm_that_drafts() -> None:
    off, on = table(
        "concurrency,baseline_tok_s,spec_tok_s,speedup_printed,K\n1,74.7,85.1,1.14,4\n"
    ).runs
    assert (off.arm, off.num_speculative_tokens) == ("off", None)
    assert on.arm == "speculation:4"
    assert on.multiplier is None, "it follows from the two rates"


def test_ratios_alone() -> None:
    found = table("batch_size,eagle_speedup,eagle3_speedup\n2,1.4,1.81\n64,0.99,~1.38\n")
    assert [(r.arm, r.offered_load, r.multiplier, r.output_tps) for r in found.runs] == [
        ("eagle", 2, 1.4, None),
        ("eagle3", 2, 1.81, None),
        ("eagle", 64, 0.99, None),
        ("eagle3", 64, 1.38, None),
    ]
    assert "approximate_values" in codes(found)


def test_a_baseline_with_a_ratio() -> None:
    found = table("batch,baseline tok/s,speedup,method\n4,200,1.5x,mtp\n")
    assert {r.arm: (r.output_tps, r.multiplier) for r in found.runs} == {
        "off": (200.0, None),
        "mtp": (None, 1.5),
    }


def test_rates_per_gpu_need_the_count() -> None:
    text = "concurrency,nospec_tok_s_gpu,eagle3_tok_s_gpu{}\n4,80,160{}\n"
    off, on = table(text.format(",gpu_count", ",8")).runs
    assert (off.output_tps, on.output_tps) == (640.0, 1280.0)
    found = table(text.format("", ""))
    (ratio,) = found.runs
    assert (ratio.arm, ratio.multiplier, ratio.output_tps) == ("eagle3", 2.0, None)
    assert "per_gpu_rate" in codes(found)


def test_rates_per_user_are_latencies() -> None:
    found = table(
        "concurrency,arm,agg_output_tok_s,tok_s_per_user\n1,nospec,101,125\n1,k3,231,250\n"
    )
    off, on = found.runs
    assert (off.output_tps, off.tpot_ms_mean) == (101.0, 8.0)
    assert (on.arm, on.tpot_ms_mean) == ("speculation:3", 4.0)
    assert "per_user_rate" in codes(found)


def test_a_baseline_repeated_beside_every_set_up_is_one_run() -> None:
    text = "batch,k,baseline_tok_s,spec_tok_s\n8,2,100,150\n8,4,100,160\n8,6,101,140\n"
    found = table(text)
    off = [r.output_tps for r in found.runs if r.spec_state is SpecState.OFF]
    assert off == [100.0, 101.0]


def test_names_beside_a_baseline_are_arms_and_alone_are_not() -> None:
    with_base = table("concurrency,arm,tok/s\n1,nospec,10\n1,ours,20\n")
    assert [r.arm for r in with_base.runs] == ["off", "ours"]
    alone = table("concurrency,arm,tok/s\n1,theirs,10\n1,ours,20\n")
    assert [(r.arm, r.label) for r in alone.runs] == [(None, "theirs"), (None, "ours")]


def test_none_in_a_column_of_arms_is_the_baseline() -> None:
    found = table("concurrency,spec_decoding,tok/s\n1,None,10\n1,mtp,20\n1,,30\n")
    assert [r.arm for r in found.runs] == ["off", "mtp", None]


def test_not_a_number_is_missing_and_counted() -> None:
    found = table("concurrency,tok/s,ttft_ms\n1,10,NaN\n2,20,n/a\n")
    assert codes(found)["nonfinite_values"] == "NaN in 1 cell; read as missing"


def test_arms_that_share_a_method_stay_apart() -> None:
    found = table("concurrency,nospec_tok_s,eagle3_bf16_tok_s,eagle3_fp8_tok_s\n1,1,2,3\n")
    assert [r.arm for r in found.runs] == ["off", "eagle3 bf16", "eagle3 fp8"]


NOTATION = ["eagle3:4", "mtp:2", "ngram:5", "draft_model:4", "sim:2", "eagle3:schedule"]


def test_arms_as_the_product_writes_them_in_a_column() -> None:
    rows = "".join(f"1,{arm},20\n" for arm in NOTATION)
    assert [r.arm for r in table(f"concurrency,arm,tok/s\n{rows}").runs] == NOTATION
    found = table(f"concurrency,arm,tok/s\n1,off,10\n{rows}")
    assert [r.arm for r in found.runs] == ["off", *NOTATION]


@pytest.mark.parametrize(
    "header", ["{} tok/s", "{}, tok/s", "{} (tok/s)", "tok/s ({})", "{}_tok_s"]
)
def test_arms_as_the_product_writes_them_in_headers(header: str) -> None:
    names = ",".join(f'"{header.format(arm)}"' for arm in ["off", *NOTATION])
    values = ",".join(str(10 + i) for i in range(7))
    found = table(f"concurrency,{names}\n8,{values}\n")
    assert arms(found) == [(a, 8, 10 + i) for i, a in enumerate(["off", *NOTATION])]


@pytest.mark.parametrize("header", ["tp:2 tok/s", "batch:8 tok/s", "c:8 tok/s"])
def test_other_fields_in_a_header_are_no_arm(header: str) -> None:
    with pytest.raises(UnknownFormat, match="without an outcome"):
        table(f"concurrency,{header}\n1,10\n")


def test_the_table_of_multipliers_reads_back() -> None:
    found = table(
        'arm,load,M,95 % low,"off, tok/s","arm, tok/s",runs off,SLO off\n'
        "sim:2,8,1.5,,100.5,150.25,3,met\nsim:4,8,1.25,,100.5,125,3,\nours,8,1.25,,100.5,90,3,\n"
    )
    assert arms(found) == [
        ("off", 8, 100.5), ("sim:2", 8, 150.25), ("sim:4", 8, 125), ("ours", 8, 90),
    ]  # fmt: skip
    assert {r.load_kind for r in found.runs} == {None}
    assert codes(found)["load_kind_unknown"].startswith("3 rows with a load of unknown kind")
    assert {r.multiplier for r in found.runs} == {None}


def test_the_table_of_prices_reads_back() -> None:
    found = table("arm,load,load kind,$/h off,tok/s off,tok/s arm\nmtp:2,4,batch,2,80,100\n")
    assert arms(found) == [("off", 4, 80), ("mtp:2", 4, 100)]
    assert {r.load_kind for r in found.runs} == {LoadKind.BATCH}
    assert "load_kind_unknown" not in codes(found)


def test_the_table_of_runs_reads_back() -> None:
    rows = [
        "off,8 concurrent,1,100.5,12.5",
        "sim:2,0.5 requests/s,2,150,9",
        "sim:4,no limit requests/s,,160,8",
        "mtp:2,batch 4,,90,7",
        "mtp:2,16,,95,7",
    ]
    text = "\n".join(['arm,load,repeat,tok/s,"TPOT ms, mean"', *rows])
    found = table(text)
    assert [(r.arm, r.load_kind, r.offered_load, r.repeat) for r in found.runs] == [
        ("off", LoadKind.CONCURRENCY, 8.0, 1),
        ("sim:2", LoadKind.REQUEST_RATE, 0.5, 2),
        ("sim:4", LoadKind.REQUEST_RATE, math.inf, None),
        ("mtp:2", LoadKind.BATCH, 4.0, None),
        ("mtp:2", None, 16.0, None),
    ]
    assert [r.tpot_ms_mean for r in found.runs] == [12.5, 9.0, 8.0, 7.0, 7.0]


def test_a_column_that_says_the_kind_beats_a_bare_load() -> None:
    (run,) = table("load,concurrency,tok/s\n99,8,10\n").runs
    assert (run.load_kind, run.offered_load) == (LoadKind.CONCURRENCY, 8.0)
    wrong = table("load,concurrency,tok/s\nheavy,8,10\n")
    assert "column 'load': 'heavy'" in codes(wrong)["unreadable_cells"]


def test_k_zero_without_a_word_is_asked_about() -> None:
    found = table("concurrency,k,tok/s\n1,0,10\n1,4,20\n")
    assert [r.arm for r in found.runs] == [None, "speculation:4"]
    assert "k_zero" in codes(found)


def test_semicolons_with_decimal_commas() -> None:
    found = read("t.csv", "\ufeffconcurrency;tok/s;ttft_ms\n1;1,5;1.234,5\n8;12,25;30\n".encode())
    assert [(r.output_tps, r.ttft_ms_mean) for r in found.runs] == [(1.5, 1234.5), (12.25, 30.0)]


def test_thousands_in_quotes() -> None:
    found = table('concurrency,tok/s\n64,"1,234.5"\n128,"2,000"\n')
    assert [r.output_tps for r in found.runs] == [1234.5, 2000.0]


def test_mixed_decimal_marks_name_the_cells() -> None:
    with pytest.raises(UnreadableFile, match=r"comma in '1,5' \(line 2.*point in '2\.5' \(line 3"):
        table("concurrency;tok/s\n1;1,5\n2;2.5\n")


def test_tabs_and_windows_encoding() -> None:
    found = read("t.tsv", "concurrency\ttok/s\tdurée\n1\t10\tà\n".encode("cp1252"))
    assert found.runs[0].output_tps == 10.0
    assert found.unmatched[0].header == "durée"
    assert "encoding_guessed" in codes(found)


def test_cells_that_are_no_value_are_counted_with_their_place() -> None:
    found = table("concurrency,tok/s,ttft (ms),tp\n1,10,fast,two\n8,20,n/a,2\n")
    assert codes(found)["unreadable_cells"].startswith("2 cells")
    assert "line 2, column 'ttft (ms)': 'fast'" in codes(found)["unreadable_cells"]
    assert [r.ttft_ms_mean for r in found.runs] == [None, None]


def test_an_assumed_unit_is_said() -> None:
    assert "tpot" in codes(table("concurrency,tpot\n1,9.5\n"))["unit_assumed"]


def test_parquet_is_the_same_table() -> None:
    columns = {
        "concurrency": [1, 8],
        "arm": ["off", "eagle3"],
        "tok/s": [10.5, 20.25],
        "tp": [2, None],
    }
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    found = read("t.parquet", sink.getvalue())
    assert arms(found) == [("off", 1, 10.5), ("eagle3", 8, 20.25)]
    assert [r.tensor_parallel for r in found.runs] == [2, None]
    with pytest.raises(UnreadableFile, match="not a whole Parquet file"):
        read("t.parquet", sink.getvalue()[:-20])


def test_fields_of_a_run_read_back() -> None:
    text = "load_kind,offered_load,spec_state,draft_method,num_speculative_tokens,output_tps"
    found = table(f"{text},prefix_caching\nrequest_rate,inf,on,eagle3,4,10,true\n")
    (run,) = found.runs
    assert (run.arm, run.load_kind, run.offered_load) == (
        "eagle3:4",
        LoadKind.REQUEST_RATE,
        math.inf,
    )
    assert run.prefix_caching is True
    assert found.unmatched == ()


def test_run_ids_are_stable_and_of_the_content() -> None:
    first, again, other = table(LONG), table(LONG), table(LONG + "\n16,off,1,1,1,H100,2,3,\n")
    assert [r.run_id for r in first.runs] == [r.run_id for r in again.runs]
    assert len({r.run_id for r in (*first.runs, *other.runs)}) == 5


def test_formulas_are_text() -> None:
    found = table('concurrency,tok/s,note\n1,10,"=HYPERLINK(""http://x"")"\n')
    assert found.unmatched[0].samples == ('=HYPERLINK("http://x")',)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "a,b\n1,2\n",
            "a table without a load (concurrency, request rate or batch size); headers found: a, b",
        ),
        ("concurrency,b\n1,2\n", "a table without an outcome (output tok/s, TPOT or speedup)"),
        ("concurrency,tok/s\n", "a table without rows"),
        ("concurrency,tok/s\n,\n1,\n", "no row of 1 has both"),
        ("concurrency,ttft,tok/s\n,ms,tok/s\n1,2,3\n", "two header rows"),
        ("load,latency,speed\nconcurrency,ttft (ms),tok/s\n1,2,3\n", "two header rows"),
        ("just some words\nand more\n", "neither JSON nor a table (just some words)"),
    ],
)
def test_what_is_no_table_of_runs(text: str, says: str) -> None:
    with pytest.raises(UnknownFormat) as caught:
        table(text)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_refused_table_offers_its_columns_and_can_be_mapped() -> None:
    text = "streams per rank,mode,speed,api_key\n1,plain,10,k123\n1,drafted,20,k123\n"
    with pytest.raises(UnknownFormat) as caught:
        table(text)
    offered = {c.header: c.samples for c in caught.value.columns}
    assert offered["mode"] == ("plain", "drafted")
    assert offered["api_key"] == ("[redacted]",)
    mapping = {
        "streams per rank": "concurrency",
        "mode": "arm",
        "speed": "output_tps",
        "api_key": "ignore",
    }
    assert arms(table(text, mapping)) == [("off", 1, 10), ("drafted", 1, 20)]


def test_mapping_overrides_and_names_arms() -> None:
    text = "concurrency,a,b,tok/s\n4,10,20,99\n"
    found = table(text, {"a": "output_tps@off", "b": "output_tps@eagle3:4", "tok/s": "ignore"})
    assert arms(found) == [("off", 4, 10), ("eagle3:4", 4, 20)]
    with_unit = table("concurrency,wait (s)\n4,0.5\n", {"wait (s)": "tpot_ms_mean"})
    assert with_unit.runs[0].tpot_ms_mean == 500.0
    with pytest.raises(InputError, match="'a' to 'speed'"):
        table(text, {"a": "speed"})


def test_json_of_no_known_tool_can_be_mapped() -> None:
    document = {
        "meta": {"gpu": "L4", "target": "acme/8b"},
        "levels": [1, 8],
        "rows": [
            {"par": 1, "kind": "baseline", "stats": {"agg": 10.5}, "prompt": "secret words"},
            {"par": 8, "kind": "mtp2", "stats": {"agg": 50.0}, "prompt": "secret words"},
        ],
    }
    data = json.dumps(document).encode()
    with pytest.raises(UnknownFormat, match="the keys meta, levels, rows") as caught:
        read("x.json", data)
    offered = {c.header: c.samples for c in caught.value.columns}
    assert offered["rows[].stats.agg"] == ("10.5", "50.0")
    assert "secret words" not in str(offered)
    mapping = {
        "rows[].par": "concurrency",
        "rows[].kind": "arm",
        "rows[].stats.agg": "output_tps",
        "meta.gpu": "gpu",
    }
    found = read("x.json", data, mapping)
    assert arms(found) == [("off", 1, 10.5), ("mtp:2", 8, 50.0)]
    assert {r.gpu for r in found.runs} == {"L4"}
    assert "secret words" not in str(found.runs)


def runs_of(name: str) -> tuple[Run, ...]:
    return read(name, (PUBLISHED / name).read_bytes()).runs


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="no shared tables beside the project")
@pytest.mark.parametrize(
    ("name", "count", "arms"),
    [
        ("trtllm_l4_qwen25_1p5b_draft0p5b_load.csv", 8, {"off", "speculation:4"}),
        ("eagle3_sglang_h100_llama31_8b.csv", 18, {"eagle", "eagle3"}),
        ("llamacpp_draft_n8_negative.csv", 6, {"off", "speculation"}),
        ("vllm_gb10_qwen38_flashnext_mtp.csv", 9, {"off", "mtp:2", "mtp:3"}),
        ("vllm_h100_qwen25_7b_ngram_extractive.csv", 12, {"off", "ngram:5"}),
        ("vllm_amd_kimi_k25_mi355x.csv", 10, {"eagle3 bf16", "eagle3 fp8draft"}),
    ],
)
def test_published_tables(name: str, count: int, arms: set[str]) -> None:
    runs = runs_of(name)
    assert len(runs) == count
    assert {r.arm for r in runs} == arms


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="no shared tables beside the project")
def test_published_sweep_with_a_column_of_arms() -> None:
    runs = runs_of("vllm_dspark_dsv4pro_b300.csv")
    ks = {f"speculation:{k}" for k in (1, 3, 5, 6, 7)}
    assert {r.arm for r in runs} == {"off", "speculation:schedule", *ks}
    assert len(runs) == 42


@pytest.mark.skipif(not CORPUS.is_dir(), reason="no shared corpus beside the project")
@pytest.mark.parametrize("pattern", ["other/aeon-*.json", "other/inventivehq-*.json"])
def test_home_made_results_are_refused_with_an_offer(pattern: str) -> None:
    for path in sorted(CORPUS.glob(pattern)):
        with pytest.raises(UnknownFormat, match="mapped to fields") as caught:
            read(path.name, path.read_bytes())
        assert caught.value.columns


def test_a_percentage_is_no_multiplier() -> None:
    found = table("concurrency,arm,speedup\n1,eagle3:3,44%\n2,eagle3:3,1.3\n")
    assert [r.multiplier for r in found.runs] == [1.3]
    assert "'44%'" in codes(found)["unreadable_cells"]


def test_euros_are_not_dollars() -> None:
    found = table("concurrency,arm,tok/s,$/h\n1,off,100,€2.50\n")
    assert found.runs[0].usd_per_hour is None
    assert "unreadable_cells" in codes(found)


def test_a_rate_with_its_unit_is_the_load() -> None:
    header = "Request rate (req/s),Max concurrency,Output throughput (tok/s),arm"
    text = f"{header}\n1,256,10,off\n2,256,20,off\n"
    assert [(r.load_kind, r.offered_load) for r in table(text).runs] == [
        ("request_rate", 1),
        ("request_rate", 2),
    ]


def test_the_output_counts_before_a_bare_throughput() -> None:
    for first in ("Throughput (tok/s)", "tokens/s"):
        text = f"concurrency,arm,{first},Output throughput (tok/s)\n1,off,1000,100\n"
        assert table(text).runs[0].output_tps == 100


def test_a_rate_per_gpu_is_a_ratio_to_its_own_models_baseline() -> None:
    text = "model,concurrency,arm,tok/s/gpu\nA,1,off,100\nA,1,mtp2,180\nB,1,off,10\nB,1,mtp2,12\n"
    assert [r.multiplier for r in table(text).runs] == pytest.approx([1.8, 1.2])


def test_a_bare_std_is_of_the_column_before_it() -> None:
    text = "concurrency,arm,tok/s,std,ttft (ms),std\n1,off,100,3,40,9\n"
    assert table(text).runs[0].output_tps_sd == 3
    text = "concurrency,arm,tok/s,ttft (ms),std\n1,off,100,40,9\n"
    assert table(text).runs[0].output_tps_sd is None


def test_latencies_below_one_without_a_unit_are_not_milliseconds() -> None:
    found = table("concurrency,arm,tok/s,TTFT,TPOT\n1,off,100,0.21,0.012\n8,off,300,0.4,0.02\n")
    assert {(r.ttft_ms_mean, r.tpot_ms_mean) for r in found.runs} == {(None, None)}
    assert "TTFT, TPOT without a unit" in codes(found)["unit_in_doubt"]
    ms = table("concurrency,arm,tok/s,TPOT\n1,off,100,12\n8,off,300,0.9\n")
    assert [r.tpot_ms_mean for r in ms.runs] == [12, 0.9]
