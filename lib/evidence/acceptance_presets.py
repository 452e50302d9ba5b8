"""Published acceptance: lengths by draft length, and rates by position, with their citation."""

import csv
from dataclasses import dataclass, field
from functools import cache

from lib.evidence.acceptance import Acceptance, of_lengths, of_survival
from lib.settings import DATA

LENGTHS = DATA / "published" / "acceptance" / "golden_al.csv"
POSITIONS = DATA / "published" / "acceptance" / "per_position.csv"


@dataclass(frozen=True)
class Preset:
    """One published drafter: `lengths` by draft length, or `survival` by position.

    `variant` is the mode with the method, `text` says on what it was measured.
    """

    model: str
    variant: str
    method: str
    text: str
    citation: str
    url: str
    licence: str
    lengths: dict[int, float] = field(default_factory=dict, hash=False)
    survival: tuple[float, ...] = ()
    stated_length: float | None = None

    @property
    def gammas(self) -> tuple[int, ...]:
        """The draft lengths that may be read."""
        return tuple(self.lengths) if self.lengths else (len(self.survival),)

    def at(self, gamma: int) -> Acceptance:
        """What it says at a draft length."""
        if self.lengths:
            return of_lengths(self.lengths, gamma, self.citation, self.method)
        return of_survival(self.survival, self.citation, self.method, self.stated_length)


@cache
def presets() -> tuple[Preset, ...]:
    """Every published drafter, in the order of the files."""
    return (*_by_length(), *_by_position())


def models() -> tuple[str, ...]:
    """The models, each once."""
    return tuple(dict.fromkeys(p.model for p in presets()))


def of_model(model: str) -> dict[str, Preset]:
    """The presets of a model by variant."""
    return {p.variant: p for p in presets() if p.model == model}


def _by_length() -> list[Preset]:
    curves: dict[tuple[str, str, str], list[dict[str, str]]] = {}
    with LENGTHS.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            curves.setdefault((row["model"], row["mode"], row["draft_method"]), []).append(row)
    found = []
    for (model, mode, method), rows in curves.items():
        first = rows[0]
        repo, path, commit = (first[n] for n in ("source_repo", "source_path", "commit"))
        found.append(
            Preset(
                model,
                f"{method}, {mode.replace('_', ' ')}",
                method.split(" ")[0].casefold(),
                f"{first['dataset_domain']}; {first['hardware_engine']}; {first['sampling']}",
                f"{repo}@{commit[:8]}, {path}",
                f"https://github.com/{repo}/blob/{commit}/{path}",
                first["licence"],
                {int(r["k"]): float(r["acceptance_length_incl_bonus"]) for r in rows},
            )
        )
    return found


def _by_position() -> list[Preset]:
    with POSITIONS.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = []
    for row in rows:
        repo, _, rest = row["source"].partition("@")
        commit, _, path = rest.partition(":")
        found.append(
            Preset(
                row["model"],
                f"{row['drafter']}, {row['dataset']}",
                row["method"],
                f"{row['dataset']}; {row['setting']}; {row['note']}",
                f"{repo}@{commit[:8]}, {path}",
                f"https://github.com/{repo}/blob/{commit}/{path}",
                row["licence"],
                survival=tuple(float(v) for v in row["values"].split()),
                stated_length=float(row["mean_acceptance_length_reported"]),
            )
        )
    return found
