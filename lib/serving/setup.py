"""What a study records of its servers and its workload, and what it leaves to the person.

Nothing is invented: what no run states, or what the runs state differently, is a placeholder in
capitals, and every command lists its own.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lib.evidence import engine_schedule
from lib.evidence.engine_schedule import Range
from lib.evidence.schedule import Schedule
from lib.run import OFF, Run, SpecState, Study

LONGEST = 300
# Methods that draft with weights of their own, and so need to be told where these are.
OWN_WEIGHTS = (
    *("draft_model", "eagle", "eagle2", "eagle3", "eagle3.1", "medusa", "dflash", "dspark"),
    *("mlp_speculator", "pard", "peagle"),
)
SYNTHETIC = ("random", "synthetic")
PLACEHOLDERS = {
    "MODEL": "the target model",
    "METHOD": "the drafting method",
    "DRAFT_MODEL": "the drafter's model",
    "K": "draft tokens a round",
    "RANGES": "the schedule's ranges",
    "INPUT_LEN": "mean tokens of a prompt",
    "OUTPUT_LEN": "mean tokens of an answer",
    "TEMPERATURE": "the sampling temperature",
    "DATASET_FILE": "the prompts",
    "ALGORITHM": "SGLang's name of the method",
}


@dataclass(frozen=True)
class Command:
    """Text to copy, each line a command of a POSIX shell; what is left to fill in; what to know."""

    title: str
    text: str
    placeholders: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ArmSetup:
    """How one arm's server is started: off, a fixed K, K = 0, or a schedule.

    `reserved_k` is `num_speculative_tokens` of the engine, the largest K it may draft.
    """

    name: str
    method: str | None = None
    draft_model: str | None = None
    k: int | None = None
    ranges: tuple[Range, ...] | None = None
    reserved_k: int | None = None

    @property
    def is_off(self) -> bool:
        """Whether the server speculates at all."""
        return self.name == OFF

    @property
    def slug(self) -> str:
        """The arm as part of a file name that reads back as the arm: `eagle3-k4`."""
        method, colon, k = self.name.partition(":")
        return safe_name(f"{method}-k{k}" if colon and k.isdecimal() else self.name)


@dataclass
class Blanks:
    """Collects the placeholders of one command while it is written."""

    used: list[str] = field(default_factory=list)

    def fill(self, value: object, placeholder: str) -> Any:
        """The value where it can stand on a command line, else the placeholder, noted."""
        if value is None or (isinstance(value, str) and not on_a_command_line(value)):
            self.used.append(placeholder)
            return placeholder
        return value

    @property
    def listed(self) -> tuple[str, ...]:
        """Each placeholder once, with what belongs there."""
        return tuple(f"{name}: {PLACEHOLDERS[name]}" for name in dict.fromkeys(self.used))


def on_a_command_line(text: str) -> bool:
    """Whether a name from a file may stand as a word of a command: printable, and no option."""
    return text.isprintable() and not text.startswith("-") and 0 < len(text.strip()) <= LONGEST


def safe_name(text: str) -> str:
    """A file name without anything a shell, a path or a file system reads otherwise."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.") or "arm"


def recorded(study: Study, arm: str, name: str) -> Any:
    """What the arm's runs agree on for a field, else what all runs agree on; None otherwise."""
    own = _values([r for r in study.runs if r.arm == arm], name)
    if own:
        return own[0] if len(own) == 1 else None
    every = _values(study.runs, name)
    return every[0] if len(every) == 1 else None


def recorded_length(study: Study, name: str) -> int | None:
    """The mean length that the study was measured at, whole tokens; None where it varies.

    Runs whose means lie within 10 % of each other share a workload, so their middle stands for
    all of them.
    """
    found = sorted(v for r in study.runs if (v := getattr(r, name)) is not None)
    if not found or found[0] < 0.9 * found[-1]:
        return None
    return max(1, round(found[len(found) // 2]))


def arm_setup(study: Study, name: str, schedule: Schedule | None = None) -> ArmSetup:
    """How the arm of that name is started, from its runs, its name and the study's drafter.

    `schedule` gives the ranges of a schedule arm that no run states, and the K that a K = 0 arm
    must reserve.
    """
    if name == OFF:
        return ArmSetup(OFF)
    named, _, k_text = name.partition(":")
    runs = [r for r in study.runs if r.arm == name]
    method = next((r.draft_method for r in runs if r.draft_method), None)
    method = method or (named if named != "speculation" else None)
    same = [r for r in study.runs if r.draft_method == method] or list(study.runs)
    drafters = _values(runs, "draft_model") or _values(same, "draft_model")
    drafter = drafters[0] if len(drafters) == 1 else None
    k = int(k_text) if k_text.isdecimal() else None
    largest = max((r.num_speculative_tokens or 0 for r in same), default=0) or None
    if schedule is not None:
        largest = max(schedule.num_speculative_tokens, largest or 0) or None
    if k == 0:
        seqs = recorded(study, name, "max_num_seqs") or 1
        return ArmSetup(name, method, drafter, 0, ((1, int(seqs), 0),), largest)
    if k_text == "schedule":
        ranges = _ranges(runs) or (None if schedule is None else schedule.ranges)
        top = max((r[2] for r in ranges or ()), default=0) or largest
        return ArmSetup(name, method, drafter, None, ranges, top)
    return ArmSetup(name, method, drafter, k, None, k)


def speculative_config(arm: ArmSetup, blanks: Blanks) -> dict[str, object]:
    """vLLM's speculative_config of an arm, with placeholders; empty for off."""
    if arm.is_off:
        return {}
    method = blanks.fill(arm.method, "METHOD")
    needs = method in OWN_WEIGHTS or method == "METHOD"
    drafter = arm.draft_model
    if needs or (drafter is not None and not on_a_command_line(drafter)):
        drafter = blanks.fill(drafter, "DRAFT_MODEL")
    k = blanks.fill(arm.reserved_k, "K")
    if arm.k is None and arm.name.endswith(":schedule") and arm.ranges is None:
        blanks.fill(None, "RANGES")
        found = engine_schedule.config(method, drafter, k)
        return {**found, engine_schedule.KEY: "RANGES"}
    return engine_schedule.config(method, drafter, k, arm.ranges)


def is_synthetic(dataset: str | None) -> bool:
    """Whether a recorded dataset is made of random tokens."""
    return dataset is not None and any(w in dataset.casefold() for w in SYNTHETIC)


def _ranges(runs: Sequence[Run]) -> tuple[Range, ...] | None:
    """The ranges that the arm's runs state, where they are the engine's own form."""
    for run in runs:
        try:
            stated = json.loads(run.schedule or "")
            return tuple((int(a), int(b), int(k)) for a, b, k in stated)
        except (ValueError, TypeError):
            continue
    return None


def _values(runs: Sequence[Run], name: str) -> list[Any]:
    found = dict.fromkeys(getattr(r, name) for r in runs)
    return [v for v in found if v is not None and v is not SpecState.UNKNOWN]
