"""What a name says about an arm: `base`, `k4`, `EAGLE-3 (K=4)`, `mtp2`, `nospec`, `eagle3:4`."""

import re
from dataclasses import dataclass, field, replace

from lib.errors import InputError
from lib.run import OFF, SpecState

LARGEST_K = 1024

_TOKEN = re.compile(r"[a-z0-9]+(?:\.\d+)*")
_OFF_WORDS = {
    *("off", "none", "baseline", "nospec", "nospeculation", "nomtp", "noeagle", "nodraft"),
    *("vanilla", "plain", "unspeculated"),
}
_OFF_ALONE = {"base", "no", "false", "disabled", "ar", "autoregressive", "n", "0"}
_ON_WORDS = {"spec", "specdec", "speculative", "speculation", "speculated", "on"}
_ON_ALONE = {"yes", "true", "enabled", "y", "1"}
_NEGATIONS = {"no", "without", "non"}
_ADAPTIVE = {"adaptive", "dynamic", "scheduled", "schedule", "dsd"}
# In `prefix-cache-off`, `quant-none`, `spec-bench` or `dynamic-batching` the word is about
# something else.
_OTHER_SWITCH = {
    *("prefix", "cache", "caching", "apc", "graph", "graphs", "cudagraph", "cudagraphs", "compile"),
    *("quant", "quantization", "thinking", "reasoning", "chunked", "prefill", "overlap", "eager"),
}
_OTHER_TOPIC = {"bench", "benchmark", "results", "result", "study", "tests", "test", "batching"}
_METHOD = re.compile(
    r"(eagle|mtp|nextn|ngram|medusa|dflash|dspark|peagle|suffix|lookahead|pard|hydra|draft"
    r"|draftmodel)(\d+(?:\.\d+)?)?"
)
_EAGLE_VERSIONS = {"1": "eagle", "2": "eagle2", "3": "eagle3", "31": "eagle3.1", "3.1": "eagle3.1"}
_K = re.compile(r"(?:k|gamma|nst)(\d{1,4})")
_K_WORDS = {"k", "gamma", "nst"}
_COUNTS = ([], *([word] for word in (*_K_WORDS, "tokens", "token")))  # `K: 4` names no method
_SPLIT_METHODS = {
    ("n", "gram"): "ngram",
    ("p", "eagle"): "peagle",
    ("draft", "model"): "draft_model",
}
_SCHEDULE = "schedule"
_NOTATION = re.compile(rf"([^:]+):\s*(\d{{1,4}}|{_SCHEDULE})")


@dataclass(frozen=True)
class ArmName:
    """An arm as far as a name states it; `rest` are the words that say something else."""

    state: SpecState
    method: str | None = None
    k: int | None = None
    schedule: str | None = None
    rest: tuple[str, ...] = ()

    @property
    def fields(self) -> dict[str, object]:
        """The fields of a run that it sets; those it says nothing about are left out."""
        stated = {
            "spec_state": self.state,
            "draft_method": self.method,
            "num_speculative_tokens": self.k,
            "schedule": self.schedule,
        }
        return {name: value for name, value in stated.items() if value is not None}


@dataclass
class _Notes:
    off: bool = False
    on: bool = False
    methods: list[str] = field(default_factory=list)
    ks: list[int] = field(default_factory=list)
    schedule: str | None = None
    rest: list[str] = field(default_factory=list)


def spell(text: str) -> ArmName | None:
    """The arm that `text` names; None where it names none or contradicts itself.

    METHOD:K counts where the method is a known one: a label may say `run:3` or a time of day.
    """
    written = notation(text)
    if written is not None and _is_known(written):
        return written
    words = _TOKEN.findall(text.casefold().replace("w/o", "without"))
    if len(words) == 1 and words[0] in _OFF_ALONE:
        return ArmName(SpecState.OFF)
    if len(words) == 1 and words[0] in _ON_ALONE:
        return ArmName(SpecState.ON)
    notes, at = _Notes(), 0
    while at < len(words):
        at += _note(notes, words, at)
    drafting = bool(notes.methods or notes.ks or notes.schedule)
    silent = not (drafting or notes.on or notes.off)
    if silent or (drafting and notes.off) or len(set(notes.methods)) > 1 or len(set(notes.ks)) > 1:
        return None
    if notes.off:
        return ArmName(SpecState.OFF, rest=tuple(notes.rest))
    method = notes.methods[0] if notes.methods else None
    k = notes.ks[0] if notes.ks else None
    return ArmName(
        SpecState.ON, method, k, notes.schedule if k is None else None, tuple(notes.rest)
    )


def _note(notes: _Notes, words: list[str], at: int) -> int:
    """Note what the word at `at` says; the number of words it took."""
    word = words[at]
    following = words[at + 1] if at + 1 < len(words) else ""
    preceding = words[at - 1] if at else ""
    if word in _NEGATIONS and (_METHOD.fullmatch(following) or following in _ON_WORDS):
        notes.off = True
        return 2
    about_other = preceding in _OTHER_SWITCH or following in _OTHER_TOPIC
    if not about_other and (word in _OFF_WORDS or (word == "base" and _at_an_end(words, at))):
        notes.off = True
        return 1
    if counted := _note_count(notes, words, at):
        return counted
    if not about_other and word in _ON_WORDS:
        notes.on = True
        return 1
    if not about_other and word in _ADAPTIVE:
        notes.schedule = "adaptive"
        return 1
    return _note_method(notes, words, at)


def _at_an_end(words: list[str], at: int) -> bool:
    return at == 0 or (at == len(words) - 1 and not re.fullmatch(r"\d+(\.\d+)?b", words[at - 1]))


def _note_count(notes: _Notes, words: list[str], at: int) -> int:
    word, following = words[at], words[at + 1] if at + 1 < len(words) else ""
    if match := _K.fullmatch(word):
        notes.ks.append(int(match.group(1)))
        return 1
    if word in _K_WORDS and re.fullmatch(r"\d{1,4}", following):
        notes.ks.append(int(following))
        return 2
    if (
        words[at : at + 2] == ["speculative", "tokens"]
        and "".join(words[at + 2 : at + 3]).isdigit()
    ):
        notes.ks.append(int(words[at + 2]))
        return 3
    if re.fullmatch(r"\d{1,3}", word) and following in ("token", "tokens") and notes.methods:
        notes.ks.append(int(word))
        return 2
    return 0


def _note_method(notes: _Notes, words: list[str], at: int) -> int:
    word, following = words[at], words[at + 1] if at + 1 < len(words) else ""
    if (word, following) in _SPLIT_METHODS:
        notes.methods.append(_SPLIT_METHODS[word, following])
        return 2
    match = _METHOD.fullmatch(word)
    if not match:
        notes.rest.append(word)
        return 1
    name, digits = match.groups()
    if name == "eagle":
        version = digits or (following if following in _EAGLE_VERSIONS else None)
        notes.methods.append(_EAGLE_VERSIONS.get(version or "1", word))
        return 2 if version and not digits else 1
    if digits and "." not in digits and int(digits) <= LARGEST_K:
        notes.ks.append(int(digits))
    notes.methods.append(name)
    return 1


def _is_known(arm: ArmName) -> bool:
    if arm.method is None:
        return True
    named = spell(arm.method)
    return named is not None and named.method is not None and not named.rest and named.k is None


def notation(text: str) -> ArmName | None:
    """The arm written as a run writes its own: `off`, METHOD:K or METHOD:schedule; else None.

    The method is any text, kept as typed.
    """
    bare = text.strip()
    if bare.casefold() == OFF:
        return ArmName(SpecState.OFF)
    written = _NOTATION.fullmatch(bare)
    if written is None or _TOKEN.findall(written[1].casefold())[-1:] in _COUNTS:
        return None
    scheduled = written[2] == _SCHEDULE
    try:
        stated = parse_arm(f"{written[1]}:0" if scheduled else bare)
    except InputError:
        return None
    named = ArmName(*stated.values())  # type: ignore[arg-type]
    return replace(named, k=None, schedule="adaptive") if scheduled else named


def arm_named(text: str) -> ArmName | None:
    """The arm that a text which is about an arm names: as a run writes it, else as `spell`."""
    return notation(text) or spell(text)


def repeat_of(text: str) -> int | None:
    """The repeat that a name states: `r1`, `run=2`, `rep3`, `repeat-1`, `trial2`."""
    words = _TOKEN.findall(text.casefold())
    for before, word in zip(["", *words], words, strict=False):
        match = re.fullmatch(r"(r|run|rep|repeat|trial)(\d{1,3})", word)
        if match and (match.group(1), before) != ("r", "deepseek"):
            return int(match.group(2))
        if before in ("run", "rep", "repeat", "trial") and re.fullmatch(r"\d{1,3}", word):
            return int(word)
    return None


def parse_arm(text: str) -> dict[str, object]:
    """Fields of `off`, `METHOD` or `METHOD:K`, all three of them, so that they replace what was.

    K = 0 is a scheduled zero, not off. Raises InputError.
    """
    method, colon, k_text = (part.strip() for part in text.strip().partition(":"))
    named = spell(method)
    if not colon and (method.casefold() == "base" or (named and named.state is SpecState.OFF)):
        return _arm_fields(SpecState.OFF, None, None)
    k = int(k_text) if re.fullmatch(r"\d{1,4}", k_text) else None
    unusable = (
        not method or len(method) > 60 or not method.isprintable() or method.casefold() == OFF
    )
    if unusable or (colon and (k is None or k > LARGEST_K)):
        raise InputError(
            f"arm {text!r}: off, METHOD or METHOD:K, with K a whole number of 0 to {LARGEST_K}"
        )
    return _arm_fields(SpecState.ON, None if method == "speculation" else method, k)


def _arm_fields(state: SpecState, method: str | None, k: int | None) -> dict[str, object]:
    return {"spec_state": state, "draft_method": method, "num_speculative_tokens": k}
