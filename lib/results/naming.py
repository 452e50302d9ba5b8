"""What a name says about an arm: `base`, `k4`, `EAGLE-3 (K=4)`, `mtp2`, `nospec`, `eagle3:4`."""

import re
from dataclasses import dataclass, field, replace

from lib.errors import InputError
from lib.run import OFF, SpecState

LARGEST_K = 1024

_TOKEN = re.compile(r"[a-z0-9]+(?:\.\d+)*")
_OFF_WORDS = {
    *("off", "none", "baseline", "nospec", "nospeculation", "nomtp", "noeagle", "nodraft"),
    *("vanilla", "plain", "unspeculated", "unspeculative", "nonspec", "nonspeculative"),
    *("nospecdec", "nospeculative", "wospec", "specoff", "nodrafter", "nodrafting"),
}
_OFF_ALONE = {"base", "no", "false", "disabled", "ar", "autoregressive", "n", "0"}
_SPEC_WORDS = {"spec", "specdec", "speculative", "speculation", "speculated", "speculating"}
_ON_ALONE = {"yes", "true", "enabled", "y", "1"}
_NEGATIONS = {
    *("no", "without", "non", "not", "wo", "minus", "disable", "disables", "disabling"),
    *("disabled", "deactivate", "deactivated"),
}
_SAID_AFTER = {
    *("disabled", "false", "off", "none", "null", "nil", "inactive", "deactivated", "absent"),
    *("unsupported", "unavailable", "never", "0"),
}
_SAID_LAST = {"no", "n", "missing"}  # `spec-no-overlap` says it of the overlap
_BETWEEN = {
    *("decode", "decoding", "dec", "sampling", "config", "mode", "model", "method"),
    *("is", "was", "be", "set", "to"),
}
# `kick-off`, `turn-on`, `off-by-one` and `run-on-gpu` are about no switch.
_PHRASES = {
    *("kick", "sign", "turn", "cut", "hand", "drop", "roll", "back", "trade", "lay", "log", "take"),
    *("play", "one", "pay", "spin", "fall", "cool", "ramp", "switch", "show", "cast", "round"),
}
_AFTER_OFF = {"by", "peak", "policy", "line", "load", "chip", "the", "host", "topic", "hours"}
_LOAD = re.compile(r"(?:c|bs|b|conc|concurrency|qps|rps|r|run|rep|repeat|trial)\d*")
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
    unclear: bool = False
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
    words = _words(text)
    if len(words) == 1 and words[0] in _OFF_ALONE:
        return ArmName(SpecState.OFF)
    if len(words) == 1 and words[0] in _ON_ALONE:
        return ArmName(SpecState.ON)
    notes, at = _Notes(), 0
    while at < len(words):
        at += _note(notes, words, at)
    drafting = bool(notes.methods or notes.ks or notes.schedule)
    silent = notes.unclear or not (drafting or notes.on or notes.off)
    if silent or (drafting and notes.off) or len(set(notes.methods)) > 1 or len(set(notes.ks)) > 1:
        return None
    if notes.off:
        return ArmName(SpecState.OFF, rest=tuple(notes.rest))
    method = notes.methods[0] if notes.methods else None
    k = notes.ks[0] if notes.ks else None
    return ArmName(
        SpecState.ON, method, k, notes.schedule if k is None else None, tuple(notes.rest)
    )


def _words(text: str) -> list[str]:
    """The words of a name in lower case; what writes `without` in letters of its own is that."""
    plain = re.sub(r"\bw[/_.\\ -]o(?![a-z0-9])", "without", text.casefold().replace("_", " "))
    return _TOKEN.findall(plain)


def _note(notes: _Notes, words: list[str], at: int) -> int:
    """Note what the word at `at` says; the number of words it took."""
    word = words[at]
    following = words[at + 1] if at + 1 < len(words) else ""
    preceding = words[at - 1] if at else ""
    if word in _NEGATIONS and preceding not in _OTHER_SWITCH and _is_about(following):
        said = next((w for w in words[at + 2 :] if w not in _BETWEEN), "")
        notes.off, notes.unclear = True, notes.unclear or said in _SAID_AFTER  # disable_spec=false
        return 2
    about_other = preceding in _OTHER_SWITCH or following in _OTHER_TOPIC
    if not about_other and _is_off(words, at):
        notes.off = True
        return 1
    if counted := _note_count(notes, words, at):
        return counted
    if not about_other and (word in _SPEC_WORDS or (word == "on" and _switches_on(words, at))):
        notes.on = True
        return 1
    if not about_other and word in _ADAPTIVE:
        notes.schedule = "adaptive"
        return 1
    return _note_method(notes, words, at)


def _is_about(word: str) -> bool:
    """Whether a word stands for speculation: `spec`, `eagle3`, `drafting`."""
    drafting = word in ("drafter", "drafting", "drafts")
    return drafting or word in _SPEC_WORDS or _METHOD.fullmatch(word) is not None


def _is_off(words: list[str], at: int) -> bool:
    """Whether the word at `at` says off: by itself, or of the speculation named before it."""
    word, following = words[at], words[at + 1] if at + 1 < len(words) else ""
    before = next((w for w in reversed(words[:at]) if w not in _BETWEEN), "")
    if _is_about(before) and (word in _SAID_AFTER or (word in _SAID_LAST and at == len(words) - 1)):
        return True
    if word == "off":
        return (words[at - 1] if at else "") not in _PHRASES and following not in _AFTER_OFF
    return word in _OFF_WORDS or (word == "base" and _at_an_end(words, at))


def _switches_on(words: list[str], at: int) -> bool:
    """Whether `on` is a switch: behind speculation, or beside nothing but a load or a repeat."""
    before = next((w for w in reversed(words[:at]) if w not in _BETWEEN), "")
    rest = [*words[:at], *words[at + 1 :]]
    return _is_about(before) or all(_LOAD.fullmatch(w) or w.isdigit() for w in rest)


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
