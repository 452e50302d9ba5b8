"""The commands of a shell script, as far as they can be read without running it."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

LONGEST_SCRIPT = 2**15
LONGEST_VALUE = 4096
MOST_VARIABLES = 64  # in a word: more only multiply what is there
_NAME = r"[A-Za-z_]\w*"
_ASSIGNMENT = re.compile(rf"({_NAME})(\+?)=")
_KUBERNETES = re.compile(rf"\$\(({_NAME})\)")
_SHELL = re.compile(rf"\$\{{({_NAME})(?::?-([^}}]{{0,200}}))?\}}|\$({_NAME})")
_VARIABLE = re.compile(rf"{_KUBERNETES.pattern}|{_SHELL.pattern}")
_OPEN = re.compile(r"\$[\w({*@#?!]|\{\{|`")
_REDIRECTION = re.compile(r"&>>?|>&\d?-?|>>|>\||<<<|<<-?|<&\d?|>|<")
_PLAIN = re.compile(r"[^\s\\'\"`$;&|()<>#]+|#")
_QUOTED = re.compile(r"[^\\\"`$]+")
_WORDS_BEFORE = ("export", "exec", "then", "else", "do", "env", "nohup", "time", "sudo", "{", "!")
# Behind such an option stands one value, so a variable there hides no further option.
_TAKES_A_VALUE = re.compile(
    r"(port|host|model|path|name|size|len|length|seqs|requests|dtype|utilization|fraction|static"
    r"|seed|revision|quantization|tp|pp|dp|key|dir|level|parser|template|space|bs|backend|np|addr"
    r"|address|url|ranks?|tokens|tokenizer)$"
)
_HIDES = re.compile(r"(?i)spec|draft|arg|opt|extra|flag|param")


def commands(script: str, variables: Mapping[str, str] | None = None) -> list[list[str]]:
    """The words of each command of `script`; continued lines are joined, variables replaced.

    Known variables are `variables`, which Kubernetes writes into the script's text as `$(NAME)`,
    and what the script itself assigns before; one that it assigns anew is not known. As in a shell
    an unquoted variable gives as many words as its value has. Empty for a script with an unbalanced
    quote, or of more than 32 KiB.
    """
    known = dict(variables or {})

    def written(match: re.Match[str]) -> str:
        return _value(match[1], None, match[0], known)

    try:
        return _commands(_KUBERNETES.sub(written, script, count=MOST_VARIABLES), known)
    except ValueError:
        return []


def _commands(script: str, known: dict[str, str]) -> list[list[str]]:
    found: list[list[str]] = [[]]
    assigned: set[str] = set()
    for word in _Script(script, known).words():
        command = found[-1]
        if word is None:
            found.append([])
        elif not command and word in _WORDS_BEFORE:
            continue
        elif not command and _ASSIGNMENT.match(word):
            _assign(word, known, assigned)
        else:
            command.append(word)
    return [command for command in found if command]


def _assign(word: str, known: dict[str, str], assigned: set[str]) -> None:
    match = _ASSIGNMENT.match(word)
    assert match is not None
    name, value, before = match[1], word[match.end() :], known.get(match[1], "")
    if match[2]:
        value = before + value
    if name in assigned and not value.startswith(before):
        known.pop(name, None)  # which of them holds, a condition says
    elif len(value) <= LONGEST_VALUE:
        known[name] = value
    assigned.add(name)


class _Script:
    """A script read from left to right; `known` may gain variables between two words."""

    def __init__(self, text: str, known: Mapping[str, str]) -> None:
        self._text = text if len(text) <= LONGEST_SCRIPT else ""
        self._at, self._known = 0, known

    def words(self) -> Iterator[str | None]:
        """The words in order; None where a command ends. Raises ValueError for an open quote."""
        into_a_file = False
        while self._at < len(self._text):
            char = self._text[self._at]
            redirection = _REDIRECTION.match(self._text, self._at)
            if redirection:
                self._at = redirection.end()
                into_a_file = not redirection[0].endswith(tuple("0123456789-"))
            elif char in ";&|\n()":
                self._at += 1
                yield None
            elif char == "#":
                end = self._text.find("\n", self._at)
                self._at = end if end >= 0 else len(self._text)
            elif char.isspace() or self._text.startswith(("\\\n", "\\\r\n"), self._at):
                self._at += 1 if char.isspace() else self._text.find("\n", self._at) - self._at + 1
            else:
                words = self._word()
                yield from [] if into_a_file else words
                into_a_file = False

    def _word(self) -> list[str]:
        """The word that starts here; several, or none, where an unquoted variable gives them."""
        done: list[str] = []
        word, quoted, replaced = "", False, 0
        while self._at < len(self._text):
            char = self._text[self._at]
            if char.isspace() or char in ";&|)":
                break
            if char in "<>":
                if re.fullmatch(r"\d?", word) and not quoted:
                    return done  # the number of a file, as in `2>&1`
                break
            if char in "'\"":
                word, quoted = word + self._quoted(char), True
            elif char == "\\":
                word, self._at = word + self._escaped(), self._at
            elif char in "$`" and replaced < MOST_VARIABLES:
                value, known = self._variable()
                replaced += 1
                if known and not _ASSIGNMENT.match(word):
                    first, *more = [""] if not value.strip() else _split(value)
                    done += [word + first, *more][:-1]
                    word = more[-1] if more else word + first
                else:
                    word += value
            else:
                word += self._plain(char)
        return [*done, word] if word or quoted else done

    def _plain(self, char: str) -> str:
        match = _PLAIN.match(self._text, self._at)
        end = match.end() if match else self._at + 1
        if char == "(":  # an array's values, a function's name
            end = self._closing(self._at, "(", ")")
        start, self._at = self._at, end
        return self._text[start:end]

    def _escaped(self) -> str:
        following = self._text[self._at + 1 : self._at + 3]
        length = 2 if following.startswith("\n") else 3 if following == "\r\n" else 0
        self._at += length or 2
        return "" if length else following[:1]

    def _quoted(self, quote: str) -> str:
        self._at += 1
        if quote == "'":
            start, end = self._at, self._text.index("'", self._at)
            self._at = end + 1
            return self._text[start:end]
        found, replaced = "", 0
        while self._text[self._at : self._at + 1] != '"':
            plain = _QUOTED.match(self._text, self._at)
            if plain:
                found, self._at = found + plain[0], plain.end()
            elif self._text.startswith("\\", self._at):
                following = self._text[self._at + 1 : self._at + 2]
                kept = following if following in '$`"\\' else "\\" + following
                found, self._at = found + ("" if following == "\n" else kept), self._at + 2
            elif self._at >= len(self._text):
                raise ValueError("No closing quotation")
            elif replaced < MOST_VARIABLES:
                found, replaced = found + self._variable()[0], replaced + 1
            else:
                found, self._at = found + self._text[self._at], self._at + 1
        self._at += 1
        return found

    def _variable(self) -> tuple[str, bool]:
        """What stands for the variable or command here; whether that is a known value."""
        start = self._at
        match = _SHELL.match(self._text, start)
        if match:
            self._at = match.end()
            value = _value(match[1] or match[3], match[2], match[0], self._known)
            return value, value != match[0]
        if self._text.startswith("`", start):
            self._at = self._text.index("`", start + 1) + 1
        elif self._text.startswith(("$(", "${"), start):
            opening = self._text[start + 1]
            self._at = self._closing(start + 1, opening, ")" if opening == "(" else "}")
        else:
            self._at = start + (2 if self._text[start + 1 : start + 2] in tuple("@*#?!") else 1)
        return self._text[start : self._at], False

    def _closing(self, start: int, opening: str, closing: str) -> int:
        depth = 0
        for at in range(start, len(self._text)):
            depth += (self._text[at] == opening) - (self._text[at] == closing)
            if depth == 0:
                return at + 1
        raise ValueError("No closing bracket")


def _split(value: str) -> list[str]:
    """The words of a variable's value. Quotes in it are taken off, as who wrote them meant it."""
    words = value.split()
    if any(word.count("'") % 2 or word.count('"') % 2 for word in words):
        with suppress(ValueError):
            return shlex.split(value) or [""]
    return [w[1:-1] if len(w) > 1 and w[0] == w[-1] and w[0] in "'\"" else w for w in words]


def _value(name: str, default: str | None, written: str, known: Mapping[str, str]) -> str:
    """A variable's value, or as it is written where it is not known or its default is empty."""
    value = known.get(name, default or written)
    return value if len(value) <= LONGEST_VALUE else written


def expand(word: str, variables: Mapping[str, str]) -> str:
    """The word with `$NAME`, `${NAME:-default}` and Kubernetes' `$(NAME)` replaced where known."""

    def value(match: re.Match[str]) -> str:
        return _value(match[1] or match[2] or match[4], match[3], match[0], variables)

    return _VARIABLE.sub(value, word, count=MOST_VARIABLES)


def is_open(word: str) -> bool:
    """Whether a word's value is known only where it runs: a variable, a template, a command."""
    return _OPEN.search(word) is not None


def has_open_option(words: Sequence[str]) -> bool:
    """Whether options may hide in words that are known only where the command runs."""
    before = ""
    for word in words:
        takes = before.startswith("-") and "=" not in before and _TAKES_A_VALUE.search(before)
        if is_open(word) and (_HIDES.search(word) or not (word.startswith("-") or takes)):
            return True
        before = word
    return False
