"""What a person asked or a model wrote: told by its key, or as a long text in words."""

import re
from collections.abc import Sequence
from functools import lru_cache

LONGEST_NOTE = 200  # characters; a longer text in words is no set-up
FEWEST_BLANKS = 20
FEWEST_TEXTS = 16  # in a list: fewer may be warnings of the tool
_SAMPLE = 4000  # characters that are looked at
_IDEOGRAPHS = 40  # scripts that are written without blanks

TEXT_KEYS = frozenset(
    {
        *("prompt", "prompts", "messages", "content", "question", "answer", "text", "texts"),
        *("generated_text", "generated_texts", "generated_outputs", "input_text", "output_text"),
        *("output", "outputs", "reasoning_output", "request_args", "tool_calls", "choices"),
        *("response", "responses", "completion", "completions", "raw_prompt", "payload", "body"),
        *("input", "inputs", "system_prompt", "query", "queries", "chat_history"),
        *("model_output", "model_outputs", "generations", "instructions", "contexts", "references"),
        *("conversation", "conversations", "reasoning", "thinking", "ground_truth", "errors"),
        *("ground_truths", "reference_answer", "expected_output", "transcript", "transcripts"),
        *("raw_request", "raw_requests", "request_body", "response_body", "dialogue", "dialogues"),
        *("error_message", "error_messages", "history", "predictions", "prediction"),
    }
)
# Keys that end in one of these: `user_prompt`, `reasoning_content`, `completion_text`.
_ENDINGS = frozenset(
    {
        *("prompt", "prompts", "text", "texts", "content", "contents", "completion", "completions"),
        *("response", "responses", "answer", "answers", "question", "questions", "instruction"),
        *("instructions", "conversation", "conversations", "transcript", "messages"),
    }
)
# One word under these is set-up (`generation: Ampere`, `context: lab`); more are a text.
_AMBIGUOUS = frozenset(
    {"context", "reference", "instruction", "generation", "turns", "turn", "request", "error"}
)
# Written words: letters with what punctuation stands at their ends. Options, paths, numbers and
# assignments are none, so that a command line is no prose.
_WORD = re.compile(r"[(\"“‘]*[^\W\d_]+(?:['’-][^\W\d_]+)*[.,;:!?)\"”’…]*")


@lru_cache(maxsize=4096)  # a document repeats its keys once a request
def names_text(key: str) -> bool:
    """Whether a text under this key is dropped."""
    return _plain(key) in TEXT_KEYS or _plain(key).rpartition("_")[2] in _ENDINGS


@lru_cache(maxsize=4096)
def _is_ambiguous(key: str) -> bool:
    return _plain(key) in _AMBIGUOUS


def _plain(key: str) -> str:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key.rpartition(".")[2])
    return re.sub(r"[\s-]", "_", spaced.strip().casefold())


def may_name_text(key: str) -> bool:
    """Whether a text under this key may be dropped, by what it is."""
    return names_text(key) or _is_ambiguous(key)


def is_text(key: str, value: object) -> bool:
    """Whether the value is a text, or a list of texts, by its key. Numbers never are."""
    if isinstance(value, str):
        if value.startswith("/") and _is_one_word(value):
            return False  # the path of an API: `text_completions: /v1/completions`
        return names_text(key) or (_is_ambiguous(key) and not _is_one_word(value))
    if not isinstance(value, list) or not (names_text(key) or _is_ambiguous(key)):
        return False
    return any(isinstance(v, (str, dict, list)) for v in value)


def _is_one_word(text: str) -> bool:
    return len(text) <= 40 and not re.search(r"\s", text.strip()) and text.isascii()


def is_prose(text: str) -> bool:
    """Whether this is a long text in words: a prompt, an answer, but not a command line."""
    return len(text) > LONGEST_NOTE and (
        _ideographs(text) or (text.count(" ") >= FEWEST_BLANKS and _in_words(text))
    )


def are_prose(values: Sequence[object]) -> bool:
    """Whether a list holds a text in words for each of many requests."""
    texts = [v for v in values[:100] if isinstance(v, str) and v]
    if len(texts) < FEWEST_TEXTS:
        return False
    return 2 * sum(len(t.split(None, 5)) > 4 and _in_words(t) for t in texts) > len(texts)


def _in_words(text: str) -> bool:
    words = text[:_SAMPLE].split()
    return 10 * sum(_WORD.fullmatch(w) is not None for w in words) >= 6 * len(words)


def _ideographs(text: str) -> bool:
    if text.isascii():
        return False
    return sum(c.isalpha() and ord(c) >= 0x0E00 for c in text[:_SAMPLE]) >= _IDEOGRAPHS


def replaced(text: str) -> str:
    """What stands in the place of a text."""
    return f"[text, {len(text):,} characters]"
