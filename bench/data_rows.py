"""Rows of the speed table that need no browser: import, the compare page's query, the crossover.

Each import is measured in a process of its own: python -m bench.data_rows time|memory FILE FLOOR
"""

import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from bench import wide_store
from bench.row import ROOT, Row, interleaved
from lib.estimate import Basis
from lib.evidence.crossover import crossover
from lib.evidence.ratio import LogRatio
from lib.money.capacity import Curve
from lib.money.demand import Demand
from lib.money.fleet import Rules, plan
from lib.results.reading import read
from lib.results.store import Store
from lib.run import Slo

MEGABYTES = 100
DRAWS, LOADS, ARMS = 10_000, 12, 6
HOURS = 8760
SLO = Slo(ttft_ms=150, tpot_ms=10)
KINDS = {"plain": ("", 2.5), "kept": (", with the kept copy", 4.0), "nan": (", with NaN", 6.0)}
MEMORY = 6.0  # times the file


def import_rows() -> list[Row]:
    """A 100 MB detailed file of vLLM into an empty store: time, and peak memory."""
    rows = []
    with tempfile.TemporaryDirectory() as place:
        plain, nan = Path(place) / "plain.json", Path(place) / "nan.json"
        _python("bench.detailed", plain, MEGABYTES)
        _python("bench.detailed", nan, MEGABYTES, "nan")
        for kind, (said, goal) in KINDS.items():
            file, keep = nan if kind == "nan" else plain, "1024" if kind == "kept" else "16"
            # orjson refuses NaN, so its floor is a file as large without.
            took, memory = (
                json.loads(_python("bench.data_rows", what, file, plain, keep=keep))
                for what in ("time", "memory")
            )
            what = f"import of a {MEGABYTES} MB detailed file{said}"
            floor = "orjson.loads of as many bytes"
            rows.append(Row(what, 1000 * took[0], floor, 1000 * took[1], goal))
            rows.append(Row(f"{what}, peak", memory[0], "the file", memory[1], MEMORY, "MB"))
    return rows


def _python(module: str, *arguments: object, keep: str = "16") -> bytes:
    command = [sys.executable, "-m", module, *map(str, arguments)]
    env = {**os.environ, "DRAFTWORTH_KEEP_MB": keep}
    return subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, check=True).stdout


def _import(what: str, file: Path, floor: Path) -> tuple[float, float]:
    """Seconds of an import and of its floor; or MB that it adds to the process, and of the file."""
    gc.collect()
    gc.freeze()
    with tempfile.TemporaryDirectory() as place:
        number = iter(range(100))

        def ours() -> float:
            data = file.read_bytes()
            store = Store.open(Path(place) / f"{next(number)}.duckdb")
            took = _seconds(lambda: store.add(read(file.name, data), "s"))
            store.close()
            return took

        if what == "memory":
            Store.open(Path(place) / "first.duckdb").close()
            before = _peak()
            ours()
            return _peak() - before, file.stat().st_size / 2**20
        same = floor.read_bytes()
        return interleaved(ours, lambda: _seconds(lambda: orjson.loads(same)), 5)


def _peak() -> float:
    """Most memory that the process has held, in MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def _seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    kept = work()
    took = time.perf_counter() - began
    del kept
    return took


def query_rows() -> list[Row]:
    """One study's runs and counts at an SLO, in a store of 1 and of 10 million requests."""
    rows, ours_ms = [], []
    for millions in (1, 10):
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "store.duckdb"
            wide_store.build(path, millions * 1_000_000)
            store = Store.open(path)
            again, first, floor = _queries(store)
            store.close()
        size = f"{millions} million requests"
        said = "grouped count on one joined table"
        rows.append(Row(f"compare page's query, {size}", again, said, floor, 1.5))
        rows.append(
            Row(f"  a study that was not asked for before, {size}", first, said, floor, None)
        )
        ours_ms.append(again)
    few, many = ours_ms
    rows.append(Row("compare page's query, 10 million", many, "the same of 1 million", few, 2.0))
    return rows


def _queries(store: Store) -> tuple[float, float, float]:
    """Milliseconds of the query asked again, asked for the first time, and of the floor."""
    middle = wide_store.RUNS // wide_store.STUDY_RUNS // 2
    number = iter(range(1, middle))

    def ask(name: str) -> None:
        ids = [r.run_id for r in store.study(name).runs]
        counts = store.request_counts(name, ids, SLO)
        assert len(counts) == wide_store.STUDY_RUNS

    def floor() -> None:
        limits = [SLO.ttft_ms, SLO.tpot_ms]
        with store._cursor() as cursor:
            cursor.execute(wide_store.FLOOR, [*limits, wide_store.study(middle)]).fetchall()

    pairs = []
    for _ in range(60):
        again = _seconds(lambda: ask(wide_store.study(middle)))
        first = _seconds(lambda: ask(wide_store.study(next(number))))
        pairs.append((again, first, _seconds(floor)))
    return tuple(1000 * statistics.median(column) for column in zip(*pairs, strict=True))


def crossover_row() -> Row:
    """Crossings of 6 arms over 12 loads with their redraws, against the draws alone."""
    curves = [
        [
            LogRatio(2.0**at, 0.5 - 0.1 * at + 0.01 * arm, se=0.02, df=4.0, n_off=3, n_on=3)
            for at in range(LOADS)
        ]
        for arm in range(ARMS)
    ]
    rng = np.random.default_rng(0)
    mine, least = interleaved(
        lambda: _seconds(lambda: [crossover(curve, DRAWS) for curve in curves]),
        lambda: _seconds(lambda: rng.standard_t(4.0, (DRAWS, LOADS, ARMS))),
        9,
    )
    what = f"{DRAWS:,}-draw crossover, {LOADS} loads × {ARMS} arms"
    return Row(what, 1000 * mine, "rng.standard_t of that size", 1000 * least, 4.0)


def fleet_row() -> Row:
    """A year of hourly demand on 6 arms, against the same arithmetic on bare arrays."""
    loads = 2.0 ** np.arange(LOADS)
    tps = 100 * loads**0.8
    curves = [_curve(f"eagle3:{arm}", loads, tps * (1 + 0.1 * arm)) for arm in range(ARMS)]
    hours = np.arange(HOURS)
    asked = 50_000 * (1.5 + np.sin(hours * 2 * np.pi / 24) + 0.2 * np.sin(hours / 500))
    demand = Demand(asked, np.full(HOURS, np.nan), "a year", Basis.ASSUMED)
    rules = Rules(headroom=0.2)
    x = np.log2(loads)

    def floor() -> None:
        for curve in curves:
            wanted = asked * 1.2 / curve.output_tps[-1]
            whole = np.maximum(np.ceil(wanted), 1.0)
            at = np.interp(asked / whole, curve.output_tps, x)
            latencies = np.interp(at, x, curve.tpot_ms), np.interp(at, x, curve.ttft_ms)
            assert len(latencies[0]) == HOURS
            whole.sum(), wanted.sum()

    def ours() -> None:
        for curve in curves:
            found = plan(curve, demand, rules)
            assert found.usd_per_day is not None
            assert found.fractional_usd_per_day is not None

    mine, least = interleaved(lambda: _seconds(ours), lambda: _seconds(floor), 31)
    what = f"fleet, {HOURS:,} hours × {ARMS} arms"
    return Row(what, 1000 * mine, "the same arithmetic on bare arrays", 1000 * least, 3.0)


def _curve(arm: str, loads: Any, tps: Any) -> Curve:
    none = np.zeros(len(loads), dtype=bool)
    return Curve(
        arm=arm,
        loads=loads,
        output_tps=tps,
        tpot_ms=1000 * loads / tps,
        ttft_ms=50 + loads,
        proven=~none,
        binds="",
        low_tps=tps,
        high_tps=tps,
        k=np.full(len(loads), 4),
        untaxed=none,
        gpus=1,
        usd_per_hour=3.0,
    )


if __name__ == "__main__":
    print(json.dumps(_import(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))))
