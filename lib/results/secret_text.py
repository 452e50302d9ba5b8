"""Secrets in texts and by names: what of a command line, an environment or a header is one.

Every pattern is linear in the text: a name starts where no name's character stands before it and
is taken whole (possessive), and what must look further looks at most a few hundred characters. So
long texts need no cut, which would leave their ends unread.
"""

import re
from functools import lru_cache
from itertools import pairwise

from lib.results.fields import words_of

REDACTED = "[redacted]"
LONGEST_KEY = 200  # of a longer one the two ends are read

_SECRET_WORDS = frozenset(
    {
        *("password", "passwords", "passwd", "passphrase", "passcode", "pwd", "secret", "secrets"),
        *("authorization", "apikey", "apikeys", "credential", "credentials", "bearer"),
        *("cookie", "cookies", "jwt", "dsn", "webhook", "webhooks"),
    }
)
_SECRET_ENDINGS = ("password", "passwd", "apikey", "authtoken", "accesstoken", "secretkey")
_SECRET_PAIRS = frozenset(
    {
        *(("access", "key"), ("private", "key"), ("auth", "key"), ("connection", "string")),
        *(("token", "value"), ("token", "secret"), ("tokens", "secret"), ("api", "key")),
        *((kind, "keys") for kind in ("api", "access", "private", "auth")),
        *((kind, "tokens") for kind in ("api", "access", "auth", "bearer", "hf", "refresh")),
    }
)
# The last word alone says it, unless the word before makes it a thing of data or of text.
_ENDS = {
    "key": frozenset(
        {
            *("primary", "foreign", "sort", "cache", "partition", "group", "grouping", "join"),
            *("index", "hash", "map", "row", "unique", "natural", "metric", "metrics", "field"),
            *("column", "config", "label", "query", "dict", "unknown", "missing", "extra", "json"),
            *("lookup", "composite", "routing", "shard", "object", "plot", "color", "legend"),
            *("sweep", "bench", "run", "study", "model", "dataset", "engine", "task", "test"),
            *("result", "request", "prefix", "block", "kv", "scenario", "prompt", "text", "data"),
        }
    ),
    "token": frozenset(
        {
            *("eos", "bos", "pad", "unk", "sep", "cls", "mask", "stop", "special", "start", "end"),
            *("first", "second", "next", "last", "output", "input", "per", "inter", "draft"),
            *("prompt", "completion", "generated", "accepted", "bonus", "each", "a", "the", "one"),
            *("multi", "single", "image", "audio", "decode", "reasoning", "total", "new"),
        }
    ),
    "pass": frozenset(
        {
            *("first", "second", "forward", "backward", "single", "one", "two", "multi", "by"),
            *("test", "prefill", "decode", "warmup", "draft", "verify", "per", "a", "the"),
        }
    ),
    "auth": frozenset({"no", "without"}),
}
_ENDS["keys"] = _ENDS["key"]
_NEEDS_A_WORD_BEFORE = frozenset({"key", "keys", "pass"})
_IN_A_QUERY = frozenset({"key", "sig", "signature", "auth", "code"})
_IF_RANDOM = frozenset({"key", "sig", "signature"})
_NO_SECRETS = frozenset(
    {"none", "null", "true", "false", "unset", "required", "disabled", "enabled", "excluded", ""}
)

_NAME = r"[A-Za-z_][\w.-]*+"
_QUOTED = (
    r"\"(?:[^\"\\]|\\.)*+(?:\"|\\?\Z)|'(?:[^'\\]|\\.)*+(?:'|\\?\Z)"
    r"|\\++[\"'][^\"'\\]*+(?:\\++[\"'])?"
)
_SCHEME = r"(?:(?:bearer|basic|token|api-?key)\s++)?+"
_SEPARATOR = r"\\*+[\"']?\s*+[:=]\s*+|\\*+[\"']\s*+,\s*+b?(?=\\*[\"'])"
_NAMED = re.compile(
    rf"(?<![\w.-])(?:(?P<option>-++{_NAME})(?P<gap>{_SEPARATOR}|\s++)"
    rf"|(?P<name>(?:(?:api|access|private|account|secret)[ ])?+{_NAME})(?P<to>{_SEPARATOR}))",
    re.IGNORECASE,
)
_VALUE = re.compile(rf"(?is)(?:{_QUOTED})|\[[^\[\]]{{0,1000}}\]?|{_SCHEME}[^\s\"',;&]+")
_HEADER_VALUE = re.compile(rf"(?is)(?:{_QUOTED})|(?:[^\"'\\\r\n]|\\(?!\\{{0,8}}[\"']))+")
_WHOLE_LINE = frozenset(
    {"authorization", "proxy-authorization", "cookie", "set-cookie", "cookie2", "set-cookie2"}
)
_COUNT = re.compile(r"[\d.]{1,12}(?:%|ms|s|us|tok|x)?")
_WORD_BEFORE = re.compile(r"([A-Za-z]+)[ -]\Z")
_OPTION_VALUE = re.compile(rf"(?is)(?:{_QUOTED})|(?!--)[^\s\"']+")
_FURTHER_KEY = re.compile(r"\s++(?![-/])(?=[^\s\"']{0,200}?\d)[^\s\"'/:]{16,}(?=\s|\Z)")
_KUBERNETES = re.compile(
    r"(?i)(?<![\w.-])(?:name|key)[\"']?\s*+[:=]\s*+[\"']?(?P<named>[\w.-]{1,200})[\"']?\s*+,?+\s*+"
    rf"[\"']?value[\"']?\s*+[:=]\s*+(?P<value>(?:{_QUOTED})|[^\s\"',;&]+)"
)
_ALONE = (
    (re.compile(r"(?s)()-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY.*?(?:-----END [^-]*+-----|\Z)"), r""),
    (
        re.compile(
            r"(?i)\b(bearer\s++)(?!authenti|authoriz|token|scheme|header)[\w.~+/=-]{8,}"
            r"|\b(?i:(basic\s++))(?=[\w+/=-]{0,200}?[\d=])[\w+/=-]{8,}"
        ),
        r"\1\2",
    ),
    (
        re.compile(
            r"(?i)(\blogin\s++\S{1,200}\s++(?:account\s++\S{1,200}\s++)?passw(?:or)?d\s++)\S+"
        ),
        r"\1",
    ),
    (re.compile(r"(?<!\S)((?:-u|--user)[ =]\s*+[\"']?[^\s:\"']{0,200}:)[^\s\"']+"), r"\1"),
    (
        re.compile(
            r"(?<![A-Za-z0-9])()(?:"
            r"(?:sk|pk|rk)[-_](?=[\w-]{0,200}?\d)[\w-]{16,}|hf_\w{16,}|gh[pousr]_\w{20,}"
            r"|github_pat_\w{20,}|glpat-[\w-]{16,}|nvapi-[\w-]{16,}|xox[abeoprs]-[\w-]{10,}"
            r"|gsk_\w{16,}|AIza[\w-]{20,}|r8_\w{20,}|npm_\w{20,}|(?:AKIA|ASIA)[0-9A-Z]{16}"
            r"|ya29\.[\w-]{16,}|eyJ[\w-]{5,2000}\.[\w-]{5,4000}(?:\.[\w-]*)?)"
        ),
        r"\1",
    ),
    # The password may hold a slash or an at sign; a port behind the host is none.
    (
        re.compile(
            r"(://)(?:[^\s/\"'?#<>]{1,512}"
            r"|[^\s/:@\"'?#<>]{0,256}:(?!\d{1,5}[/?#])[^\s\"'<>]{1,512})(?=@)"
        ),
        r"\1",
    ),
)
_SUSPECT = re.compile(
    r"key|token|pass|pwd|secret|auth|credential|bearer|basic|cookie|jwt|dsn|webhook|connection"
    r"|sig|://|[spr]k[-_]|hf_|gh[pousr]_|_pat_|glpat|nvapi|xox|gsk_|aiza|r8_|npm_|akia|asia|ya29"
    r"|eyj|-u |--user"
)


@lru_cache(maxsize=4096)  # a document repeats its keys once a request
def is_secret(key: str) -> bool:
    """Whether a key's value is a secret: `api_key`, `HF_TOKEN`, `Authorization`, never `tokens`."""
    if len(key) > LONGEST_KEY:
        key = f"{key[: LONGEST_KEY // 2]} {key[-LONGEST_KEY // 2 :]}"
    words = words_of(key)
    if not words:
        return False
    strong = not _SECRET_WORDS.isdisjoint(words) or any(w.endswith(_SECRET_ENDINGS) for w in words)
    return strong or any(p in _SECRET_PAIRS for p in pairwise(words)) or _ends_secret(words)


def _ends_secret(words: list[str]) -> bool:
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last in _ENDS:
        return before not in _ENDS[last] and (bool(before) or last not in _NEEDS_A_WORD_BEFORE)
    return last.endswith("token") and len(last) > len("token")


def is_secret_option(word: str) -> bool:
    """Whether an option of a command line takes a secret: `--api-key`, `--key`, `-token`."""
    name = word.lstrip("-")
    return word.startswith("-") and (name.casefold() in ("key", "keys") or is_secret(name))


@lru_cache(maxsize=4096)
def is_weak(name: str) -> bool:
    """Whether a secret's name is also an ordinary word, as `token` or `key`: counts are no secret.

    Behind it and a colon stands a secret only where it looks like one: `first token: 34 ms`.
    """
    words = words_of(name[-LONGEST_KEY:])
    strong = not _SECRET_WORDS.isdisjoint(words) or any(p in _SECRET_PAIRS for p in pairwise(words))
    return not strong and words[-1:] != [] and words[-1] in (*_ENDS, *_IN_A_QUERY)


def redact_text(text: str) -> str:
    """A text with the secrets in it replaced: options, environment, headers, URLs, known shapes."""
    if not _SUSPECT.search(text.casefold()):
        return text
    for pattern, kept in _ALONE:
        text = pattern.sub(kept + REDACTED, text)
    return _without_named(_KUBERNETES.sub(_variable, text))


def _variable(match: re.Match[str]) -> str:
    """`{name: HF_TOKEN, value: …}` written as text."""
    if not is_secret(match["named"]):
        return match[0]
    return match[0][: match.start("value") - match.start()] + _in_its_quotes(match["value"])


def _without_named(text: str) -> str:
    """The text without the values of names, options, headers and variables that are secrets."""
    pieces, done = [], 0
    for match in _NAMED.finditer(text):
        if match.start() < done or not _is_named_secret(match):
            continue
        value = _value_pattern(match).match(text, match.end())
        if value is None or not _is_value(match, value[0]):
            continue
        pieces += [text[done : match.end()], _in_its_quotes(value[0])]
        done = value.end()
        while match["option"] and (further := _FURTHER_KEY.match(text, done)):
            pieces.append(f" {REDACTED}")
            done = further.end()
    return "".join([*pieces, text[done:]]) if pieces else text


def _value_pattern(match: re.Match[str]) -> re.Pattern[str]:
    """A header's value reaches to the end of its line, an option's is one word.

    Behind an option's value may stand what is no secret; a list of keys goes on with what looks
    like keys alone.
    """
    if match["option"] is not None:
        return _OPTION_VALUE
    return _HEADER_VALUE if match["name"].casefold() in _WHOLE_LINE else _VALUE


def _is_named_secret(match: re.Match[str]) -> bool:
    if match["option"] is not None:
        return is_secret_option(match["option"])
    name = match["name"]
    in_query = _before(match) in ("?", "&") and name.casefold() in _IN_A_QUERY
    return is_secret(name) or in_query or name.casefold() in _IF_RANDOM


def _before(match: re.Match[str]) -> str:
    return match.string[max(match.start() - 1, 0) : match.start()]


def _is_value(match: re.Match[str], value: str) -> bool:
    """Whether what stands behind a secret's name can be the secret."""
    bare = value.strip("\\\"'")
    if bare.casefold() in _NO_SECRETS or bare == REDACTED:
        return False
    name, gap = match["name"], match["gap"] or match["to"]
    if name is None or (_before(match) in ("?", "&") and "=" in gap):
        return True
    if name.casefold() in _IF_RANDOM:
        return len(bare) >= 12 and _looks_random(bare)
    if not is_weak(name):
        return True
    start = match.start()
    word = _WORD_BEFORE.search(match.string[max(start - 20, 0) : start])
    about_data = word is not None and word[1].casefold() in _ENDS.get(name.casefold(), ())
    if about_data or _COUNT.fullmatch(bare):
        return False
    quoted = value[:1] in ('"', "'", "\\")
    return quoted or "=" in gap or (len(bare) >= 8 and any(c.isdigit() for c in bare))


def _looks_random(text: str) -> bool:
    return any(c.isdigit() for c in text) and any(c.isalpha() for c in text)


def _in_its_quotes(value: str) -> str:
    opening = re.match(r"\\*[\"']", value)
    if opening is None:
        return REDACTED
    return f"{opening[0]}{REDACTED}{opening[0] if value.endswith(opening[0]) else ''}"
