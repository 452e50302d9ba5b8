"""What engines answer at /metrics, written for a test, and a server that answers it."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[str, bytes], tuple[int, bytes]]


def line(name: str, value: float, **labels: str) -> str:
    written = ",".join(f'{n}="{v}"' for n, v in labels.items())
    return f"{name}{{{written}}} {value}\n" if labels else f"{name} {value}\n"


def histogram(
    name: str, buckets: Mapping[float, float], count: float, sum_s: float, **labels: str
) -> str:
    rows = [line(f"{name}_bucket", n, le=f"{edge}", **labels) for edge, n in buckets.items()]
    rows.append(line(f"{name}_bucket", count, le="+Inf", **labels))
    rows += [line(f"{name}_sum", sum_s, **labels), line(f"{name}_count", count, **labels)]
    return "".join(rows)


def vllm(
    drafts: float = 0,
    drafted: float = 0,
    accepted: float = 0,
    generated: float = 0,
    completed: float = 0,
    positions: Sequence[float] = (),
    running: float = 0,
    **labels: str,
) -> str:
    """A vLLM server's counters; no labels are those of its first engine."""
    labels = labels or {"engine": "0", "model_name": "acme/target"}
    counts = {
        "vllm:spec_decode_num_drafts_total": drafts,
        "vllm:spec_decode_num_draft_tokens_total": drafted,
        "vllm:spec_decode_num_accepted_tokens_total": accepted,
        "vllm:generation_tokens_total": generated,
        "vllm:num_requests_running": running,
    }
    text = "".join(line(name, value, **labels) for name, value in counts.items())
    text += line("vllm:request_success_total", completed, finished_reason="stop", **labels)
    per_position = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
    rows = (line(per_position, n, **labels, position=str(p)) for p, n in enumerate(positions))
    return text + "".join(rows)


@dataclass
class Standin:
    """A server on loopback: `text` at /metrics, or what `answer` gives for a path and a body."""

    text: str = ""
    answer: Answer | None = None
    url: str = ""
    asked: list[tuple[str, bytes, str]] = field(default_factory=list)

    def respond(self, path: str, body: bytes) -> tuple[int, bytes]:
        if self.answer is not None:
            return self.answer(path, body)
        return (200, self.text.encode()) if path == "/metrics" else (404, b"")


@contextmanager
def serving(standin: Standin) -> Iterator[Standin]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            standin.asked.append((self.path, body, self.headers.get("Authorization", "")))
            status, found = standin.respond(self.path, body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(found)))
            self.end_headers()
            self.wfile.write(found)

        def log_message(self, *_: object) -> None:
            """Nothing: tests read what they need."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    standin.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield standin
    finally:
        server.shutdown()
        server.server_close()
