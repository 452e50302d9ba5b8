"""A store of many runs and requests, made with SQL in seconds, and its floor: one joined table."""

from pathlib import Path

import duckdb

from lib.results.requests import TOTALS
from lib.results.store import Store

RUNS = 100_000
STUDY_RUNS = 100  # more than 12 loads × 6 arms, the largest sweep that people show
ARMS = ("NULL", "'ngram'", "'eagle3'", "'mtp'")
# The fewest that can be asked of one study, with its runs' fields beside each request already.
FLOOR = """
SELECT run_id, count(*), count(*) FILTER (ok AND ttft_ms <= ? AND tpot_ms <= ?)
FROM joined WHERE study = ? GROUP BY run_id
"""


def study(number: int) -> str:
    """Name of the n-th study; they differ early, as DuckDB's zones know eight letters alone."""
    return f"{number:05} study"


def build(path: Path, requests: int) -> None:
    """A store of RUNS runs in studies of STUDY_RUNS, and so many request rows in run order."""
    Store.open(path).close()
    each = requests // RUNS
    with duckdb.connect(str(path)) as store:
        store.execute("PRAGMA threads=2")
        store.execute(
            f"""
            INSERT INTO runs BY NAME SELECT printf('%016x', r * 2654435761) AS run_id,
                printf('%05d study', r // {STUDY_RUNS}) AS study,
                printf('%064x', r // 10) AS source_sha256, 'vllm-bench-serve' AS tool,
                'v3 keys' AS tool_version, TIMESTAMP '2026-05-01' + to_seconds(r) AS started_at,
                false AS zone_known, 1 AS repeat, 'a/model' AS target,
                CASE r % 4 WHEN 0 THEN 'off' ELSE 'on' END AS spec_state,
                [{", ".join(ARMS)}][r % 4 + 1] AS draft_method, r % 4 AS num_speculative_tokens,
                'concurrency' AS load_kind, (2 ** (r // 4 % 12))::DOUBLE AS offered_load,
                200 AS num_prompts, 200 AS completed, 0 AS failed, 60.0 + r % 7 AS duration_s,
                20000 AS input_tokens, 40000 AS output_tokens, 600.0 + r % 100 AS output_tps,
                80.0 AS ttft_ms_mean, 75.0 AS ttft_ms_p50, 180.0 AS ttft_ms_p99,
                8.0 AS tpot_ms_mean, 7.5 AS tpot_ms_p50, 12.0 AS tpot_ms_p99,
                1000 AS drafts, 3000 AS draft_tokens, 2000 AS accepted_tokens,
                [900, 700, 400] AS accepted_per_position, '{{"backend":"openai"}}' AS extra,
                1 AS version, printf('import %d', r // 10) AS import_id, false AS revises,
                []::VARCHAR[] AS stated, []::VARCHAR[] AS carried, r + 1 AS request_key
            FROM range({RUNS}) AS _(r)
            """
        )
        store.execute(
            f"""
            INSERT INTO requests SELECT r + 1, i * 0.1, 100, 200, 20 + hash(r * 1000 + i) % 200,
                4 + hash(i * 7919 + r) % 10, 900 + hash(i + r) % 2000, true, NULL, NULL, NULL, NULL
            FROM range({RUNS}) AS _(r), range({each}) AS _(i) ORDER BY r, i
            """
        )
        store.execute(
            f"INSERT INTO request_sets SELECT study, run_id, request_key, false, {TOTALS} "
            "FROM requests JOIN (SELECT study, run_id, request_key FROM runs) USING (request_key) "
            "GROUP BY ALL ORDER BY request_key"
        )
        store.execute(
            "INSERT INTO studies SELECT study, TIMESTAMP '2026-05-01', 1 FROM runs GROUP BY study"
        )
        store.execute(
            "CREATE TABLE joined AS SELECT runs.study, runs.run_id, spec_state, draft_method, "
            "num_speculative_tokens, offered_load, output_tps, ok, requests.ttft_ms, "
            "requests.tpot_ms, requests.e2e_ms, requests.output_tokens FROM requests JOIN runs "
            "USING (request_key) ORDER BY request_key"
        )
