"""An OpenAI-compatible server, asked for answers of a given length, one at a time, and timed."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from lib.addresses import Allowed, address_of
from lib.errors import FetchError, InputError, ProbeError
from lib.fetching import SECONDS, Response, bearer, fetch

TOKEN = "DRAFTWORTH_TOKEN"
MOST_SECONDS = 300.0

_REFUSED = (401, 403)
_NOT_THERE = (404, 405, 501)
_NOT_UNDERSTOOD = (400, 422)


@dataclass(frozen=True)
class Server:
    """A server as a person names it: the address that its `/v1` hangs under.

    An empty model is the first one that the server lists.
    """

    url: str
    model: str = ""
    token: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        try:
            address = address_of(self.url)
        except FetchError as error:
            raise InputError(str(error)) from None
        if "?" in address.target:
            raise InputError(f"{address.shown}: leave out ? and what follows; http://host:port")

    @property
    def base(self) -> str:
        """The address without `/v1`."""
        return self.url.rstrip("/").removesuffix("/v1")

    @property
    def shown(self) -> str:
        """host:port."""
        return address_of(self.url).shown

    def ask(
        self,
        path: str,
        allowed: Allowed,
        document: Mapping[str, Any] | None = None,
        seconds: float = SECONDS,
    ) -> Response:
        """What the server answers at a path, to a JSON document where there is one."""
        if document is None:
            return fetch(self.base + path, allowed, headers=bearer(self.token), seconds=seconds)
        return fetch(
            self.base + path,
            allowed,
            method="POST",
            body=json.dumps(document).encode(),
            headers=(("Content-Type", "application/json"), *bearer(self.token)),
            seconds=seconds,
        )


@dataclass(frozen=True)
class Answer:
    """One answer: `seconds` from asking to its last byte, and its tokens as the server counts."""

    seconds: float
    tokens: int
    prompt_tokens: int


@dataclass(frozen=True)
class Endpoint:
    """A server that answers: which model, by which of the two APIs, and until when to ask.

    `ignore_eos` is whether it takes that field; without it a model may stop early. `deadline` is
    a moment of time.monotonic.
    """

    server: Server
    allowed: Allowed
    deadline: float
    model: str
    version: str = ""
    chat: bool = False
    ignore_eos: bool = True

    def complete(self, prompt: str, tokens: int) -> Answer:
        """An answer of `tokens` tokens, greedily decoded. Raises ProbeError, FetchError."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise ProbeError(
                f"{self.server.shown}: the time for the whole measurement is up; "
                "allow more, or ask for fewer repeats or tokens"
            )
        start = perf_counter()
        response = self._ask(prompt, tokens, min(left, MOST_SECONDS))
        seconds = perf_counter() - start
        if response.status != 200:
            raise _failed(self.server, response)
        return self._answer(response, seconds, tokens)

    def try_once(self, prompt: str) -> Response:
        """The response to a request for one token, whatever it is."""
        return self._ask(prompt, 1, MOST_SECONDS)

    def _ask(self, prompt: str, tokens: int, seconds: float) -> Response:
        document: dict[str, Any] = {
            "model": self.model,
            "max_tokens": tokens,
            "temperature": 0,
            "stream": False,
        }
        if self.ignore_eos:
            document["ignore_eos"] = True
        if self.chat:
            document["messages"] = [{"role": "user", "content": prompt}]
        else:
            document["prompt"] = prompt
        path = "/v1/chat/completions" if self.chat else "/v1/completions"
        return self.server.ask(path, self.allowed, document, seconds)

    def _answer(self, response: Response, seconds: float, asked: int) -> Answer:
        usage = _object(_document(response).get("usage"))
        counted, prompt = _count(usage.get("completion_tokens")), _count(usage.get("prompt_tokens"))
        if counted is None:
            raise ProbeError(
                f"{self.server.shown}: its answer counts no tokens (usage.completion_tokens); "
                "a server that does is needed"
            )
        if counted > asked:
            raise ProbeError(
                f"{self.server.shown}: answered {counted} tokens where at most {asked} were asked "
                "for; a server that keeps to max_tokens is needed"
            )
        return Answer(seconds, counted, prompt or 0)


def connect(server: Server, allowed: Allowed, deadline: float, prompt: str) -> Endpoint:
    """How a server is to be asked, found by asking it for one token. Raises ProbeError, FetchError.

    Completions come first, since no chat template is in between; `ignore_eos` is left out where it
    is not understood.
    """
    listed = server.ask("/v1/models", allowed)
    if listed.status in _REFUSED:
        raise _failed(server, listed)
    models = _document(listed).get("data") if listed.status == 200 else None
    first = _object(models[0]) if isinstance(models, list) and models else {}
    name = server.model or first.get("id")
    if not isinstance(name, str) or not name:
        raise ProbeError(f"{server.shown}: lists no model at /v1/models; name the model")
    version = _version(server, allowed, first)
    refusal: Response | None = None
    for chat in (False, True):
        for ignore_eos in (True, False):
            found = Endpoint(server, allowed, deadline, name, version, chat, ignore_eos)
            response = found.try_once(prompt)
            if response.status == 200:
                return found
            if response.status not in (*_NOT_THERE, *_NOT_UNDERSTOOD):
                raise _failed(server, response)
            refusal = refusal or response
            if response.status in _NOT_THERE:
                break
    assert refusal is not None
    raise _failed(server, refusal)


def _version(server: Server, allowed: Allowed, model: Mapping[str, Any]) -> str:
    """The engine and its version, as far as the server says."""
    try:
        response = server.ask("/version", allowed)
    except FetchError:
        return ""
    said = _document(response).get("version") if response.status == 200 else None
    words = (model.get("owned_by"), said)
    return " ".join(w for w in words if isinstance(w, str) and w.isprintable())[:80]


def _failed(server: Server, response: Response) -> ProbeError:
    if response.status in _REFUSED:
        return ProbeError(
            f"{server.shown}: refuses with status {response.status}; give it a token that it takes "
            f"({TOKEN} on the command line)"
        )
    found = _document(response)
    error = found.get("error", found.get("detail", found.get("message")))
    said = error.get("message") if isinstance(error, dict) else error
    words = " ".join(said.split())[:160] if isinstance(said, str) else ""
    if server.token.strip():
        words = words.replace(server.token.strip(), "…")
    words = "".join(c for c in words if c.isprintable())
    way_out = f'it says "{words}"' if words else "is it an OpenAI-compatible server?"
    return ProbeError(f"{server.shown}: no completion, status {response.status}; {way_out}")


def _document(response: Response) -> dict[str, Any]:
    """The JSON object of a response; an empty one where it is none."""
    try:
        return _object(json.loads(response.text))
    except (ValueError, RecursionError):
        return {}


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if whole else None
