"""How people spell the fields of a run and their units, in headers, metadata and labels."""

from lib.run import PERCENTILES

ARM = "arm"

# spelling → (dimension, factor to the dimension's base). "rate per GPU" and "rate per user" are
# dimensions of their own: neither is the throughput of the deployment.
UNITS: dict[str, tuple[str, float]] = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), ("time", 1.0)),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), ("time", 1e-3)),
    **dict.fromkeys(("us", "usec", "microsecond", "microseconds"), ("time", 1e-6)),
    **dict.fromkeys(("ns", "nanosecond", "nanoseconds"), ("time", 1e-9)),
    **dict.fromkeys(
        ("tok s", "toks s", "token s", "tokens s", "t s", "tps", "tok sec", "tokens sec"),
        ("tokens", 1.0),
    ),
    **dict.fromkeys(
        ("tokens per second", "tokens per sec", "tokens per s", "tok per s"), ("tokens", 1.0)
    ),
    **dict.fromkeys(("tok s gpu", "tok s per gpu", "tokens s gpu", "tps gpu"), ("per GPU", 1.0)),
    **dict.fromkeys(
        ("tok s user", "tok s per user", "tokens s user", "tps user"), ("per user", 1.0)
    ),
    **dict.fromkeys(
        ("req s", "reqs s", "rps", "requests s", "requests per second"), ("requests", 1.0)
    ),
    **dict.fromkeys(("gib",), ("memory", 1.0)),
    **dict.fromkeys(("mib",), ("memory", 1 / 1024)),
    **dict.fromkeys(("gb",), ("memory", 1e9 / 2**30)),
    **dict.fromkeys(("w", "watt", "watts"), ("power", 1.0)),
    **dict.fromkeys(("kw",), ("power", 1e3)),
    **dict.fromkeys(("j", "joule", "joules"), ("energy", 1.0)),
    **dict.fromkeys(("kj",), ("energy", 1e3)),
    **dict.fromkeys(("wh",), ("energy", 3600.0)),
    **dict.fromkeys(("kwh",), ("energy", 3.6e6)),
    **dict.fromkeys(
        ("$ h", "usd h", "$ hr", "$ hour", "usd per hour", "$ per hour"), ("price", 1.0)
    ),
    **dict.fromkeys(("x", "times"), ("ratio", 1.0)),
}

# field → (spellings, dimension of its unit, factor of its own unit to the base)
PLAIN: dict[str, tuple[str, ...]] = {
    ARM: (
        *("arm", "method", "variant", "spec", "spec decode", "spec decoding", "speculation"),
        *("speculative", "speculative decoding", "drafter", "spec method", "speculative method"),
        *("speculative algorithm", "spec algorithm"),
    ),
    "label": ("label", "name", "run name", "tag", "benchmark name"),
    "repeat": (
        *("repeat", "rep", "run number", "repeat idx", "replicate", "trial", "iteration", "iter"),
        *("run index", "run idx", "repeat index"),
    ),
    "block": ("block", "session"),
    "target": ("target", "model", "model id", "model name", "target model", "base model"),
    "target_revision": ("target revision", "revision", "model revision"),
    "target_quantization": (
        *("target quantization", "quantization", "quantisation", "quant", "precision", "dtype"),
        "weight quant",
    ),
    "dataset": ("dataset", "data set", "dataset name", "workload"),
    "domain": ("domain", "category"),
    "input_len": (
        *("input len", "isl", "input length", "prompt len", "prompt length", "mean input tokens"),
        "prompt tokens mean",
    ),
    "output_len": (
        *("output len", "osl", "output length", "mean output tokens", "output tokens mean"),
    ),
    "temperature": ("temperature", "temp"),
    "top_p": ("top p",),
    "seed": ("seed",),
    "engine": ("engine", "framework", "inference engine", "serving engine", "server engine"),
    "engine_version": (
        *("engine version", "vllm version", "sglang version", "trtllm version", "server version"),
        "framework version",
    ),
    "build": ("build", "image", "docker image", "container"),
    "max_num_seqs": ("max num seqs", "max running requests", "max batch size"),
    "prefix_caching": ("prefix caching", "prefix cache", "enable prefix caching"),
    "graph_max_batch": ("graph max batch", "cuda graph max bs", "max cudagraph capture size"),
    "draft_model": (
        *("draft model", "drafter model", "draft", "speculative model", "spec model"),
        *("speculative draft model path", "draft model path"),
    ),
    "num_speculative_tokens": (
        *("num speculative tokens", "k", "gamma", "num spec tokens", "speculative tokens"),
        *("spec tokens", "spec k", "draft len", "draft length"),
        *("num steps", "speculative num steps"),
    ),
    "draft_topk": ("draft topk", "eagle topk", "speculative eagle topk"),
    "draft_tensor_parallel": ("draft tensor parallel", "draft tp", "draft tensor parallel size"),
    "gpu": ("gpu", "gpu name", "gpu type", "hardware", "hw", "accelerator", "device"),
    "gpu_count": ("gpu count", "gpus", "num gpus", "n gpus", "number of gpus"),
    "tensor_parallel": ("tensor parallel", "tp", "tp size", "tensor parallel size"),
    "data_parallel": ("data parallel", "dp", "dp size", "data parallel size"),
    "pipeline_parallel": ("pipeline parallel", "pp", "pp size", "pipeline parallel size"),
    "concurrency": (
        *("concurrency", "max concurrency", "conc", "concurrent", "concurrent requests"),
        *("num concurrency", "num concurrent requests", "users", "streams", "clients"),
    ),
    "request_rate": ("request rate", "qps", "rate", "offered rate", "requested rate"),
    "batch": ("batch", "batch size", "bs", "static batch"),
    "offered_load": ("load",),
    "running_mean": ("running mean", "mean running", "concurrency mean", "mean concurrency"),
    "num_prompts": ("num prompts", "prompts", "num requests", "total requests"),
    "completed": ("completed", "successful", "successful requests"),
    "failed": ("failed", "errors", "num errors", "failed requests", "error requests"),
    "input_tokens": ("input tokens", "total input tokens"),
    "output_tokens": (
        *("output tokens", "total output tokens", "total completion tokens", "completion tokens"),
        *("generated tokens", "total generated tokens", "num generated tokens", "generated"),
        *("emitted", "emitted tokens", "num emitted tokens", "total emitted tokens"),
        "spec decode num emitted tokens",
    ),
    "output_tps_sd": ("output tps sd", "sd", "throughput sd", "tok s sd", "std", "stddev"),
    "output_tps_n": ("output tps n", "repeats", "n runs", "num runs", "n repeats"),
    "slo": ("slo",),
    "started_at": ("started at", "start time", "timestamp", "timestamp utc", "started"),
    "drafts": ("drafts", "num drafts", "spec num drafts", "spec decode num drafts"),
    "draft_tokens": (
        *("draft tokens", "spec decode draft tokens", "drafted", "drafted tokens"),
        *("num draft tokens", "num drafted tokens", "spec decode num draft tokens"),
    ),
    "accepted_tokens": (
        *("accepted tokens", "spec decode accepted tokens", "accepted", "num accepted tokens"),
        "spec decode num accepted tokens",
    ),
    "accept_rate": (
        *("accept rate", "acceptance rate", "draft acceptance rate", "accept ratio"),
        *(
            "acceptance",
            "acceptance rate %",
            "accept rate %",
            "acceptance %",
            "acceptance rate pct",
        ),
        *("accept rate pct", "acceptance pct", "acceptance percent", "acceptance rate percent"),
        *("draft acceptance rate %", "draft acceptance rate pct"),
    ),
    "accept_length": (
        *("accept length", "acceptance length", "mean acceptance length", "accept len", "tau"),
        *("mean accepted length", "accepted length tau", "avg accept length"),
    ),
}
MEASURED: dict[str, tuple[tuple[str, ...], str, float]] = {
    "output_tps": (
        (
            *("output tps", "output", "out", "throughput", "output throughput", "aggregate"),
            *("agg", "agg output", "aggregate output", "generation", "generation throughput"),
            *("output token throughput", "output tokens", "decode throughput", "system"),
        ),
        "tokens",
        1.0,
    ),
    "request_rps": (
        ("request rps", "request throughput", "throughput", "request"),
        "requests",
        1.0,
    ),
    "goodput_rps": (("goodput rps", "goodput", "request goodput"), "requests", 1.0),
    "multiplier": (
        (
            *("multiplier", "speedup", "speed up", "ratio", "speedup printed", "ratio printed"),
            *("speedup claimed",),
        ),
        "ratio",
        1.0,
    ),
    "duration_s": (("duration", "wall time", "elapsed", "elapsed time", "wall"), "time", 1.0),
    "usd_per_hour": (("usd per hour", "price per hour", "cost per hour"), "price", 1.0),
    "gpu_mem_gib": (("gpu mem", "gpu memory", "memory", "vram"), "memory", 1.0),
    "power_w": (("power", "gpu power", "mean power"), "power", 1.0),
    "energy_j": (("energy", "total energy"), "energy", 1.0),
}
LATENCIES: dict[str, tuple[str, ...]] = {
    "ttft": ("ttft", "time to first token"),
    "tpot": ("tpot", "time per output token"),
    "itl": ("itl", "inter token latency", "intertoken latency"),
    "e2e": ("e2e", "e2el", "e2e latency", "request latency", "req latency", "end to end latency"),
}
STATISTICS = {"mean": "mean", "avg": "mean", "average": "mean", "median": "p50"} | {
    p: p for p in PERCENTILES
}
