"""An OpenAI-compatible server with known step times, on a clock that only it moves."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Clock:
    """A clock in place of time.perf_counter."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Engine:
    """What is simulated: times in ms; `accepts` are accepted drafts of the rounds, in a cycle.

    `wobble_ms` is added to a step's time by turns; `early` is where the model stops; `lag` is how
    often /metrics answers before it has counted; with `late_series` it shows a counter only once it
    has moved; `foreign` tokens are generated for others with
    every request.
    """

    clock: Clock
    step_ms: float = 10.0
    once_ms: float = 50.0
    wobble_ms: tuple[float, ...] = (0.0,)
    model: str = "sim/model"
    accepts: tuple[int, ...] = ()
    plain_every: int = 0
    round_ms: float = 0.0
    prefix: str = "vllm:"
    metrics: bool = True
    lag: int = 0
    foreign: int = 0
    late_series: bool = False
    early: int | None = None
    completions: bool = True
    takes_ignore_eos: bool = True
    usage: bool = True
    token: str = ""
    status: int = 200
    seen: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    generated: int = 0
    drafts: int = 0
    accepted: int = 0
    _published: tuple[int, int, int] = (0, 0, 0)
    _waits: int = 0

    def generate(self, asked: int) -> int:
        """Decode, and move the clock."""
        tokens = min(asked, self.early) if self.early is not None else asked
        step = self.step_ms + self.wobble_ms[len(self.seen) % len(self.wobble_ms)]
        spent, done, turn = self.once_ms + step, 1, 0
        while done < tokens:
            turn += 1
            if not self.accepts or (self.plain_every and turn % self.plain_every == 0):
                spent += step
                done += 1
                continue
            found = self.accepts[turn % len(self.accepts)]
            self.drafts += 1
            self.accepted += found
            spent += self.round_ms
            done += found + 1
        self.clock.now += spent / 1000
        self.generated += tokens + self.foreign
        self._waits = self.lag
        return tokens

    def exposition(self) -> str:
        """The counters, in the engine's own names."""
        if self._waits:
            self._waits -= 1
        else:
            self._published = (self.generated, self.drafts, self.accepted)
        generated, drafts, accepted = self._published
        if self.late_series and not generated:
            return ""
        rows = {f"{self.prefix}generation_tokens_total": generated}
        if self.late_series and not drafts:
            pass
        elif self.accepts and self.prefix == "sglang:":
            rows["sglang:spec_verify_calls_total"] = drafts
        elif self.accepts:
            rows[f"{self.prefix}spec_decode_num_drafts_total"] = drafts
            rows[f"{self.prefix}spec_decode_num_accepted_tokens_total"] = accepted
            rows[f"{self.prefix}spec_decode_num_accepted_tokens_created"] = 1_700_000_000
        lines = (
            f'# TYPE {name} counter\n{name}{{engine="{i}"}} {value / 2}'
            for name, value in rows.items()
            for i in "01"
        )
        return "\n".join(lines) + "\n"


@contextmanager
def served(engine: Engine) -> Iterator[str]:
    """The address of a server of the engine."""

    class Handler(BaseHTTPRequestHandler):
        def _send(self, status: int, text: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def _refuse(self, status: int, why: str) -> None:
            self._send(status, json.dumps({"error": {"message": why}}))

        def _is_barred(self) -> bool:
            said = self.headers.get("Authorization", "")
            if engine.token and said != f"Bearer {engine.token}":
                self._refuse(401, f"bad token: {said}")
                return True
            return False

        def do_GET(self) -> None:
            if self._is_barred():
                return
            if self.path == "/v1/models":
                one = {"id": engine.model, "owned_by": "standin"}
                self._send(200, json.dumps({"data": [one]}))
            elif self.path == "/version":
                self._send(200, json.dumps({"version": "1.2"}))
            elif self.path == "/metrics" and engine.metrics:
                self._send(200, engine.exposition())
            else:
                self._refuse(404, "not found")

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self._is_barred():
                return
            engine.seen.append((self.path, asked))
            if engine.status != 200:
                self._refuse(engine.status, f"loading {self.headers.get('Authorization', '')}")
            elif self.path == "/v1/completions" and not engine.completions:
                self._refuse(404, "not found")
            elif "ignore_eos" in asked and not engine.takes_ignore_eos:
                self._refuse(400, "unknown field ignore_eos")
            else:
                usage = {
                    "prompt_tokens": 30,
                    "completion_tokens": engine.generate(asked["max_tokens"]),
                }
                self._send(200, json.dumps({"usage": usage} if engine.usage else {}))

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
