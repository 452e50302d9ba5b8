"""One reader a tool. A file is told by its keys: the first reader that recognises it reads it.

A reader module has TITLE (how the tool is called), TOOL (as runs carry it) and LEVELS (the keys it
reads, by version). It knows one or more forms of file: `recognise(values)` and
`find(name, values, sha256)` for JSON and YAML, `recognise_rows(rows)` and `find_rows(name, rows,
sha256)` for delimited text (HEADER_ROWS of it are headers), `recognise_text(text)` and
`find_text(name, text, sha256)` for any other text.
"""

from types import ModuleType

from lib.results.tools import (
    aiperf,
    genai_bench,
    genai_perf,
    gpu_record,
    guidellm,
    guidellm_csv,
    guidellm_early,
    inference_perf,
    inferencex,
    llama_bench,
    llama_server,
    llm_d,
    llmperf,
    manifests,
    prometheus,
    sglang_bench,
    spec_bench,
    specforge,
    trtllm_bench,
    vllm_bench,
    vllm_offline,
)

READERS: tuple[ModuleType, ...] = (
    guidellm,
    guidellm_csv,
    guidellm_early,
    vllm_bench,
    vllm_offline,
    sglang_bench,
    aiperf,
    genai_perf,
    llmperf,
    inferencex,
    trtllm_bench,
    inference_perf,
    llm_d,
    genai_bench,
    manifests,
    llama_bench,
    llama_server,
    specforge,
    spec_bench,
    prometheus,
    gpu_record,
)
KNOWN = f"{', '.join(reader.TITLE for reader in READERS)}, tables with one row a run"
LISTED = "python -m lib formats lists what is read"
