"""What the name of a container image says of the engine in it."""

import re

from lib.results.server_args import LLAMA_CPP, SGLANG, TENSORRT_LLM, VLLM, engine_name

# repositories whose tag is the version of the engine itself
_OWN_IMAGES = {
    VLLM: re.compile(r"(^|/)vllm-openai(-\w+)?$"),
    SGLANG: re.compile(r"(^|/)lmsysorg/sglang$"),
    TENSORRT_LLM: re.compile(r"(^|/)tensorrt-llm/(release|devel)$"),
    LLAMA_CPP: re.compile(r"(^|/)llama\.cpp$"),
}


def engine_of(image: str) -> tuple[str | None, str | None]:
    """The engine that an image is of, and its version where the tag is the engine's own.

    `vllm/vllm-openai:v0.11.0` → vLLM, 0.11.0. The tag of another project's image is its own.
    """
    plain = image.partition("@")[0]
    repository, colon, tag = plain.rpartition(":")
    if not colon or "/" in tag:  # no tag; a colon may be of the registry's port
        repository, tag = plain, ""
    engine = engine_name(repository)
    own = engine in _OWN_IMAGES and _OWN_IMAGES[engine].search(repository)
    number = re.match(r"v?(\d+\.\d+[\w.]*)|(?:[\w-]*-)?(b\d{3,})$", tag)
    return engine, (number[1] or number[2]) if own and number else None
