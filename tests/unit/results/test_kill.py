"""A process killed while it imports: the store opens, each file is in it whole or not at all.

DRAFTWORTH_KILL_ROUNDS sets how often it is killed (default: a few times).
"""

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path
from typing import Any

from lib.results.importing import import_paths
from lib.results.store import RequestCounts, Store
from lib.run import Slo

ROOT = Path(__file__).resolve().parents[3]
ROUNDS = int(os.environ.get("DRAFTWORTH_KILL_ROUNDS", "3"))
FILES, RUNS, REQUESTS = 40, 2, 25
# One process pays for the modules; each round is a fork of it that has opened nothing yet.
IMPORTER = """
    import os, signal, sys
    from pathlib import Path
    from lib.results.importing import import_paths
    from lib.results.store import Store

    for line in sys.stdin:
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
            print("ended", flush=True)
            continue
        path, folder = (Path(part) for part in line.rstrip().split("\\t"))
        store = Store.open(path)
        print(os.getpid(), flush=True)
        import_paths(store, [folder], "s")
        signal.pause()
"""


def a_record(number: int) -> dict[str, Any]:
    duration, tokens = 10.0 + number, 100 * REQUESTS
    return {
        "date": "20260501-120000",
        "label": f"run {number}",
        "model_id": "a/model",
        "num_prompts": REQUESTS,
        "request_rate": "inf",
        "max_concurrency": 2 ** (number % 6),
        "duration": duration,
        "completed": REQUESTS,
        "total_input_tokens": tokens,
        "total_output_tokens": tokens,
        "request_throughput": REQUESTS / duration,
        "output_throughput": tokens / duration,
        "max_output_tokens_per_s": tokens / duration / 2,  # below the mean: a flag of the run
        "mean_ttft_ms": 10.0,
        "std_ttft_ms": float("nan"),  # a flag of the file
        "input_lens": [100] * REQUESTS,
        "output_lens": [100] * REQUESTS,
        "ttfts": [0.01 * (i + 1) for i in range(REQUESTS)],
        "itls": [[0.001] * 99] * REQUESTS,
        "errors": [""] * REQUESTS,
    }


def write_files(folder: Path) -> None:
    folder.mkdir()
    for at in range(FILES):
        records = [a_record(at * RUNS + i) for i in range(RUNS)]
        (folder / f"{at:02}.json").write_text("\n".join(map(json.dumps, records)))


def check_each_file_whole_or_absent(store: Store) -> int:
    """The number of files in the store."""
    if "s" not in store.studies():
        with store._cursor() as cursor:
            for table in ("runs", "requests", "request_sets", "run_files", "sources", "flags"):
                assert cursor.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
        return 0
    files = {s.sha256: s for s in store.sources("s")}
    runs = store.study("s").runs
    assert Counter(r.source_sha256 for r in runs) == dict.fromkeys(files, RUNS)
    counts = store.request_counts("s", [r.run_id for r in runs], Slo(ttft_ms=55))
    assert counts == {r.run_id: RequestCounts(REQUESTS, 5) for r in runs}
    with store._cursor() as cursor:
        requests = cursor.execute("SELECT count(*), count(DISTINCT request_key) FROM requests")
        assert requests.fetchone() == (len(runs) * REQUESTS, len(runs))
        links = set(cursor.execute("SELECT run_id, sha256 FROM run_files").fetchall())
        flags = Counter(cursor.execute("SELECT sha256, code FROM flags").fetchall())
    assert links == {(r.run_id, r.source_sha256) for r in runs}
    expected = {"nonfinite_values": 1, "peak_below_mean": RUNS}
    assert flags == {(sha256, code): n for sha256 in files for code, n in expected.items()}
    assert sum(i.runs for i in store.imports("s")) == len(runs)
    return len(files)


def test_a_killed_import_leaves_each_file_whole_or_absent_and_can_be_repeated(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "files"
    write_files(folder)
    store = Store.open(tmp_path / "whole.duckdb")
    began = time.perf_counter()
    assert import_paths(store, [folder], "s").imported == FILES * RUNS
    took = time.perf_counter() - began
    assert check_each_file_whole_or_absent(store) == FILES
    store.close()
    zygote = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(IMPORTER)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    chance = random.Random()
    try:
        assert zygote.stdin is not None
        assert zygote.stdout is not None
        for number in range(ROUNDS):
            path = tmp_path / f"{number}.duckdb"
            print(f"{path}\t{folder}", file=zygote.stdin, flush=True)
            pid = int(zygote.stdout.readline())
            time.sleep(chance.uniform(0, took))
            os.kill(pid, signal.SIGKILL)
            assert zygote.stdout.readline() == "ended\n"
            store = Store.open(path)
            there = check_each_file_whole_or_absent(store)
            assert import_paths(store, [folder], "s").imported == (FILES - there) * RUNS
            assert check_each_file_whole_or_absent(store) == FILES
            store.close()
            path.unlink()
    finally:
        zygote.kill()
        zygote.communicate()
