"""A schedule as somebody pastes it: recognised, unwrapped and judged by its own engine's rules."""

import ast
import json
import re
import shlex
import warnings as python_warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from lib.errors import DraftworthError, InputError
from lib.evidence import engine_schedule, trtllm_schedule
from lib.evidence.engine_schedule import LARGEST, Check, shown
from lib.evidence.engine_support import data_parallel_drops, method_warnings
from lib.evidence.sglang_schedule import CANNOT
from lib.results.parsing import parse_yaml

VLLM, TRTLLM, SGLANG = "vLLM", "TensorRT-LLM", "SGLang"
LONGEST = 100_000
ALLOWED = (
    "[[1,16,3],[17,64,0]], a speculative_config as JSON, YAML or Python, a vllm serve command, or "
    "TensorRT-LLM's {8: 4, 32: 2}"
)
_CONFIG = "speculative_config"
_FLAGS = ("--speculative-config", "--speculative_config", "-sc")
_MAP_KEY = re.compile(r"\s*\d+\s*-\s*\d+\s*")


@dataclass(frozen=True)
class Pasted:
    """What was recognised. A number that the text does not state is None."""

    engine: str
    form: str
    entries: object = None
    maximum: object = None
    max_num_seqs: int | None = None
    method: str | None = None
    data_parallel: int | None = None
    pipeline_parallel: int | None = None
    runner: str | None = None


@dataclass(frozen=True)
class Judgement:
    """The engine's verdict on a pasted schedule; `check` is None where it could not be read.

    `needs` names the numbers that are still to be typed; until then `check` holds errors only.
    `notes` say what was taken from the text and what is known about its method.
    """

    engine: str
    form: str
    check: Check | None
    needs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    method: str | None = None

    @property
    def all_errors(self) -> tuple[str, ...]:
        """Everything that stops the engine, or the reading."""
        return (*self.errors, *(self.check.errors if self.check else ()))


def judge(
    text: str,
    num_speculative_tokens: int | None = None,
    max_num_seqs: int | None = None,
    trtllm_version: str | None = None,
    runner: str | None = None,
) -> Judgement:
    """Read a pasted text and judge it; nothing is raised.

    The two numbers count where the text does not state them. `trtllm_version` decides what a key
    of TensorRT-LLM's dict means.
    """
    try:
        found = read(text)
    except DraftworthError as error:
        return Judgement("", "", None, errors=(str(error),))
    notes = _taken(found, num_speculative_tokens, max_num_seqs)
    found = replace(
        found,
        maximum=num_speculative_tokens if found.maximum is None else found.maximum,
        max_num_seqs=max_num_seqs if found.max_num_seqs is None else found.max_num_seqs,
        runner=runner if found.runner is None else found.runner,
    )
    if found.engine == SGLANG:
        return Judgement(SGLANG, found.form, None, errors=(CANNOT,), method=found.method)
    return _vllm(found, notes) if found.engine == VLLM else _trtllm(found, notes, trtllm_version)


def read(text: str) -> Pasted:
    """Recognise a pasted text. Raises InputError that says what is allowed."""
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"schedule: empty; paste {ALLOWED}")
    if len(text) > LONGEST:
        raise InputError(f"schedule: {len(text):,} characters; at most {LONGEST:,} are read")
    flat = text.strip()
    try:
        return _of_value(json.loads(flat), "JSON")
    except (ValueError, RecursionError):
        pass
    if re.search(r"(^|\s)(-sc|--[a-z])|^\s*vllm\s", flat):
        return _of_command(flat)
    value = _python(flat)
    if value is not None:
        return _of_value(value, "Python")
    return _of_value(_yaml(flat), "YAML")


def _yaml(text: str) -> object:
    try:
        (document,) = parse_yaml("schedule", text).values
    except (DraftworthError, ValueError, RecursionError):
        document = None
    if not isinstance(document, Mapping | list):
        raise InputError(f"schedule {shown(text)}: not readable; paste {ALLOWED}")
    return document


def _of_value(value: object, written: str) -> Pasted:
    """The schedule in a parsed value, whichever engine it is for."""
    if not isinstance(value, Mapping):
        return Pasted(VLLM, f"vLLM list, {written}", value)
    if not value:
        raise InputError(f"schedule: empty; paste {ALLOWED}")
    for key in (_CONFIG, "speculative-config"):
        if isinstance(inner := value.get(key), Mapping):
            return _with_server(_of_value(inner, written), value)
    method = value.get("method")
    method = method if isinstance(method, str) else None
    if engine_schedule.KEY in value or engine_schedule.MAXIMUM in value or "method" in value:
        maximum = value.get(engine_schedule.MAXIMUM)
        entries = value.get(engine_schedule.KEY, value)
        return Pasted(VLLM, f"vLLM speculative_config, {written}", entries, maximum, method=method)
    if {trtllm_schedule.KEY, trtllm_schedule.MAXIMUM, "decoding_type"} & value.keys():
        if trtllm_schedule.KEY not in value:
            raise InputError(
                f"speculative_config has no {trtllm_schedule.KEY}: TensorRT-LLM drafts "
                f"{shown(value.get(trtllm_schedule.MAXIMUM, 'max_draft_len'))} at every batch"
            )
        maximum = value.get(trtllm_schedule.MAXIMUM)
        found = Pasted(
            TRTLLM, f"speculative_config, {written}", value[trtllm_schedule.KEY], maximum
        )
        return replace(found, method=_decoding_type(value))
    if "candidate_steps" in value:
        return Pasted(SGLANG, "adaptive config")
    if all(isinstance(k, str) and _MAP_KEY.fullmatch(k) for k in value):
        return Pasted(VLLM, f"the map form of an early draft, {written}", value)
    if all(isinstance(k, int) or (isinstance(k, str) and k.strip().isdecimal()) for k in value):
        return Pasted(TRTLLM, f"{trtllm_schedule.KEY}, {written}", value)
    if any(isinstance(k, str) and _MAP_KEY.fullmatch(k) for k in value):
        return Pasted(VLLM, f"the map form of an early draft, {written}", value)
    keys = ", ".join(shown(k) for k in list(value)[:6])
    raise InputError(f"schedule with the keys {keys}: not known; paste {ALLOWED}")


def _decoding_type(value: Mapping[object, object]) -> str | None:
    name = value.get("decoding_type")
    known = {v.lower(): k for k, v in trtllm_schedule.DECODING_TYPES.items()}
    return known.get(name.lower()) if isinstance(name, str) else None


def _with_server(found: Pasted, around: Mapping[object, object]) -> Pasted:
    """What stands beside a speculative_config in the engine's own arguments."""

    def whole(*names: str) -> int | None:
        for name in names:
            for key in (name, name.replace("_", "-")):
                if isinstance(number := around.get(key), int) and not isinstance(number, bool):
                    return number
        return None

    return replace(
        found,
        max_num_seqs=whole("max_num_seqs", "max_batch_size"),
        data_parallel=whole("data_parallel_size"),
        pipeline_parallel=whole("pipeline_parallel_size"),
    )


def _of_command(text: str) -> Pasted:
    """A command line: `vllm serve … --speculative-config '{…}'`, whole or in dotted parts."""
    try:
        words = shlex.split(text.replace("\\\n", " ").replace("\n", " "), comments=False)
    except ValueError as error:
        raise InputError(f"command: {error}; quote the JSON in '…'") from None
    flags = dict(_flags(words))
    if any(name.startswith("--speculative-adaptive") for name in flags) or (
        "--speculative-num-steps" in flags
    ):
        return Pasted(SGLANG, "server command")
    config = _config_of(flags)
    if config is None:
        raise InputError(
            "command: it has no --speculative-config, so the server does not speculate; add "
            "--speculative-config '{…}'"
        )
    found = _of_value(config, "command line")
    numbers = {
        name: int(flags[flag])
        for name, names in (
            ("max_num_seqs", ("--max-num-seqs",)),
            ("data_parallel", ("--data-parallel-size", "-dp")),
            ("pipeline_parallel", ("--pipeline-parallel-size", "-pp")),
        )
        for flag in names
        if flags.get(flag, "").isdecimal() and len(flags[flag]) <= 9
    }
    runner = {"0": "V1", "1": "V2"}.get(flags.get("VLLM_USE_V2_MODEL_RUNNER", ""))
    return replace(found, runner=runner, **numbers)  # type: ignore[arg-type]


def _flags(words: list[str]) -> Iterator[tuple[str, str]]:
    """Flag and value, as `--a b`, `--a=b` or an environment variable in front."""
    for i, word in enumerate(words):
        name, equals, value = word.partition("=")
        if not name.startswith("-"):
            if equals and name.isidentifier():
                yield name, value
            continue
        if not equals and i + 1 < len(words):
            value = words[i + 1]
        head, dot, tail = name.partition(".")
        yield head.replace("_", "-") + dot + tail.replace("-", "_"), value


def _config_of(flags: Mapping[str, str]) -> dict[str, object] | None:
    config: dict[str, object] = {}
    for flag in _FLAGS:
        if flag in flags:
            try:
                value = json.loads(flags[flag])
            except (ValueError, RecursionError) as error:
                raise InputError(f"{flag}: not JSON ({error}); quote it in '…'") from None
            if not isinstance(value, dict):
                raise InputError(f"{flag}: a JSON object is allowed, not {type(value).__name__}")
            config |= value
    found = bool(config) or any(flag in flags for flag in _FLAGS)
    for name, text in flags.items():
        head, dot, tail = name.partition(".")
        if dot and head in _FLAGS:
            found = True
            try:
                config[tail] = json.loads(text)
            except (ValueError, RecursionError):
                config[tail] = text
    if not found:
        return None
    return config or {"method": None}


def _python(text: str) -> object:
    """A literal, or the speculative_config in a call or an assignment; None where there is none."""
    try:
        with python_warnings.catch_warnings():
            python_warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    try:
        only = tree.body[0] if len(tree.body) == 1 else None
        if isinstance(only, ast.Expr) and not isinstance(only.value, ast.Call):
            value: object = ast.literal_eval(only.value)
            return value if isinstance(value, dict | list | tuple) else None
        named = dict(_named(tree))
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None
    known = (_CONFIG, engine_schedule.KEY, trtllm_schedule.KEY)
    return named if any(name in named for name in known) else None


def _named(tree: ast.AST) -> Iterator[tuple[str, object]]:
    """Every name that is given a literal, as keyword or by assignment."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg:
            name, value = node.arg, node.value
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, node.value
        else:
            continue
        try:
            yield name, ast.literal_eval(value)
        except (ValueError, TypeError):
            continue


def _taken(found: Pasted, typed: int | None, typed_seqs: int | None) -> list[str]:
    """Numbers that the text states otherwise than the fields beside it."""
    notes = []
    name = trtllm_schedule.MAXIMUM if found.engine == TRTLLM else engine_schedule.MAXIMUM
    if found.maximum is not None and typed is not None and found.maximum != typed:
        notes.append(f"The text's own {name} = {shown(found.maximum)} is used, not {typed}.")
    if found.max_num_seqs not in (None, typed_seqs) and typed_seqs is not None:
        notes.append(f"The text's own limit of {found.max_num_seqs} is used, not {typed_seqs}.")
    return notes


def _needs(found: Pasted, names: tuple[str, str]) -> tuple[str, ...]:
    given = (found.maximum, found.max_num_seqs)
    return tuple(n for n, value in zip(names, given, strict=True) if value is None)


def _vllm(found: Pasted, notes: list[str]) -> Judgement:
    needs = _needs(found, (engine_schedule.MAXIMUM, "max_num_seqs"))
    maximum = LARGEST if found.maximum is None else found.maximum
    seqs = LARGEST if found.max_num_seqs is None else found.max_num_seqs
    checked = engine_schedule.check(found.entries, maximum, seqs)  # type: ignore[arg-type]
    if checked.valid and needs:
        return Judgement(VLLM, found.form, None, needs, tuple(notes), method=found.method)
    if checked.valid and found.method is not None:
        ks = [k for _, _, k in checked.effective]
        drafted = [k for k in ks if k]
        notes += method_warnings(
            found.method, 0 in ks, found.runner, found.pipeline_parallel, drafted
        )
    ranks = found.data_parallel or 1
    if checked.valid and ranks > 1 and isinstance(maximum, int):
        dropped = data_parallel_drops(ranks, maximum, "a fixed K")
        fixed = Check(True, (), (), ((1, seqs, maximum),))
        return Judgement(VLLM, found.form, fixed, (), tuple(notes), (dropped,), found.method)
    return Judgement(VLLM, found.form, checked, (), tuple(notes), method=found.method)


def _trtllm(found: Pasted, notes: list[str], version: str | None) -> Judgement:
    needs = list(_needs(found, (trtllm_schedule.MAXIMUM, "max_batch_size")))
    meaning = trtllm_schedule.meaning_of(version)
    keys = found.entries if isinstance(found.entries, Mapping) else {}
    if meaning is None and keys and not any(str(k).strip() == "1" for k in keys):
        meaning = trtllm_schedule.LAST
        notes.append("No key 1: only releases from 1.3 on take it, where a key is a last batch.")
    if meaning is None:
        needs.append("the TensorRT-LLM version (until 1.2 a key is a first batch, from 1.3 a last)")
    checked = None
    if not needs:
        assert meaning is not None
        checked = trtllm_schedule.check(found.entries, found.maximum, found.max_num_seqs, meaning)
        notes += [f"A key is the {meaning} of its range.", trtllm_schedule.ATTENTION_DP]
    return Judgement(TRTLLM, found.form, checked, tuple(needs), tuple(notes), method=found.method)
