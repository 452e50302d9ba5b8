"""Figures of the acceptance page: by position, tokens a round and speedup over draft length.

Each figure is drawn from the columns that its CSV holds. Builders give what `go.Figure` takes, as
plain dicts, because they are redrawn while a slider is dragged.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lib.evidence.acceptance import Acceptance
from lib.report.acceptance_text import ground
from lib.report.format import multiplier, number
from lib.report.style import HUES, INK, MUTED, Mode, layout_fields
from lib.theory import acceptance as theory
from lib.theory import walltime

HEIGHT = 300
RIGHT = 9  # from the end of a curve to its label
LABEL_PX = 92  # room for the labels right of the curves
TOPS = (1.5, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20)

Columns = dict[str, list[Any]]
Fields = dict[str, Any]


def has_positions(found: Acceptance) -> bool:
    """Whether there is a figure by position."""
    return len(theory.conditional(found.survival)) > 1


def by_position(found: Acceptance) -> Columns:
    """Acceptance at each position given that it was tested, the single alpha and the decay."""
    measured = theory.conditional(found.survival)
    n = len(measured)
    out: Columns = {"position": list(range(1, n + 1)), "acceptance": list(measured)}
    if found.alpha is not None:
        out["single_alpha"] = [found.alpha.value] * n
    if found.decay is not None:
        out["decay"] = found.decay.acceptance(n).tolist()
    return out


def over_gamma(found: Acceptance) -> Columns:
    """Tokens a round by draft length: measured, by the single alpha and by the decay."""
    gammas = list(range(1, found.reach + 1))
    out: Columns = {"gamma": gammas, "measured": [found.lengths.get(g) for g in gammas]}
    if found.alpha is not None:
        out["single_alpha"] = np.asarray(walltime.tau(found.alpha.value, gammas)).tolist()
    if found.decay is not None:
        out["decay"] = found.decay.lengths(len(gammas), max(found.lengths)).tolist()
    return out


def speedup_over_gamma(found: Acceptance, c: float, v: float) -> Columns:
    """S = tau / (gamma c + v) by draft length on the known lengths, and whether measured."""
    curve = found.curve
    if curve is None:
        return {"gamma": [], "speedup": [], "measured": []}
    cost = c + v if found.flat_cost else np.array(curve.gammas) * c + v
    s = np.array(curve.tau) / cost
    return {
        "gamma": list(curve.gammas),
        "speedup": s.tolist(),
        "measured": list(curve.measured),
    }


def position_figure(found: Acceptance, mode: Mode) -> Fields:
    """Acceptance by position with the single alpha and the decay fit."""
    columns = by_position(found)
    xs, last = columns["position"], columns["position"][-1]
    data, notes = [], []
    if "single_alpha" in columns:
        alpha = columns["single_alpha"][0]
        data.append(_line(xs, columns["single_alpha"], "single α", mode, MUTED[mode], "dot"))
        notes.append(_note(last, alpha, f"single α {alpha:.3f}", MUTED[mode]))
    if "decay" in columns:
        data.append(_line(xs, columns["decay"], "decay fit", mode, _decay_color(mode), "dash"))
        notes.append(_note(last, columns["decay"][-1], "decay fit", _decay_color(mode)))
    data.append(_points(xs, columns["acceptance"], "position %{x}: %{y:.3f}", mode))
    notes.append(_note(last, columns["acceptance"][-1], ground(found), INK[mode]))
    return _figure(
        data,
        _apart(notes, 1.04),
        mode,
        right=LABEL_PX,
        xaxis=_axis("position in the draft", 0.7, last + 0.3, _ticks(last)),
        yaxis=_axis("acceptance, given tested", -0.02, 1.04, 0.2, showgrid=True),
    )


def length_figure(found: Acceptance, mode: Mode) -> Fields:
    """Tokens a round over the draft length: measured, single alpha, decay and its extrapolation."""
    columns = over_gamma(found)
    gammas, last = columns["gamma"], columns["gamma"][-1]
    known = sorted(found.lengths)
    data, notes = [], []
    top = max((found.lengths[g] for g in known), default=1.0)
    if "single_alpha" in columns:
        curve = columns["single_alpha"]
        data.append(_line(gammas, curve, "single α", mode, MUTED[mode], "dot"))
        notes.append(_note(last, curve[-1], "single α", MUTED[mode]))
        top = max(top, curve[-1])
    if "decay" in columns:
        curve, longest, color = columns["decay"], known[-1], _decay_color(mode)
        data.append(_line(gammas[:longest], curve[:longest], "decay fit", mode, color, "dash"))
        data.append(
            _line(
                gammas[longest - 1 :], curve[longest - 1 :], "extrapolated", mode, color, "2px 5px"
            )
        )
        label = "extrapolated" if last > longest else "decay fit"
        notes.append(_note(last, curve[-1], label, color))
        top = max(top, curve[-1])
    data.append(_points(known, [found.lengths[g] for g in known], "γ = %{x}: %{y:.3f}", mode))
    if known:
        end = found.lengths[known[-1]]
        notes.append({**_note(known[-1], end, ground(found), INK[mode]), **_BELOW})
    high = next((t for t in TOPS if t >= top * 1.04), top * 1.04)
    return _figure(
        data,
        _apart(notes, high),
        mode,
        right=LABEL_PX,
        xaxis=_axis("draft length γ (tokens)", 0.7, last + 0.3, _ticks(last)),
        yaxis=_axis("tokens a round τ", 0, high, None, showgrid=True),
    )


def speedup_figure(found: Acceptance, c: float, v: float, mode: Mode) -> Fields | None:
    """S over the draft length at your c and v; hollow where not measured; the best is named."""
    columns = speedup_over_gamma(found, c, v)
    gammas, s = columns["gamma"], columns["speedup"]
    if not gammas:
        return None
    best = int(np.argmax(s))
    hollow = [not m for m in columns["measured"]]
    points = _points(gammas, s, "γ = %{x}: %{y:.2f}×", mode)
    points["marker"]["symbol"] = ["circle-open" if h else "circle" for h in hollow]
    points["mode"] = "lines+markers"
    points["line"] = {"color": INK[mode], "width": 1.5}
    label = f"<b>best γ = {gammas[best]}: {multiplier(s[best])}</b>"
    side = "left" if best < 2 else "right" if best > len(gammas) - 3 else "center"
    note = {**_note(gammas[best], s[best], label, _decay_color(mode)), **_ABOVE, "xanchor": side}
    unity = {"color": MUTED[mode], "width": 1}
    shape = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 1, "y1": 1, "line": unity}
    top = max(*s, 1.0) * 1.12
    high = next((t for t in TOPS if t >= top), top)
    fields = _figure(
        [points],
        [note, {**_note(0.99, 1, "S = 1", MUTED[mode]), "xref": "paper", **_BELOW_RIGHT}],
        mode,
        xaxis=_axis("draft length γ (tokens)", 0.5, gammas[-1] + 0.5, _ticks(gammas[-1])),
        yaxis=_axis("speedup S (×)", 0, high, None, showgrid=True),
    )
    fields["layout"]["shapes"] = [shape]
    return fields


def alt_texts(found: Acceptance, c: float, v: float) -> dict[str, str]:
    """What each figure shows, in words."""
    rates = ", ".join(f"{p:.2f}" for p in theory.conditional(found.survival))
    alpha = "no single α" if found.alpha is None else f"single α {found.alpha.value:.3f}"
    lengths = ", ".join(f"{found.lengths[g]:.2f} at {g}" for g in sorted(found.lengths))
    columns = speedup_over_gamma(found, c, v)
    best = int(np.argmax(columns["speedup"])) if columns["gamma"] else None
    said = (
        "no draft length known"
        if best is None
        else f"best at γ = {columns['gamma'][best]} with {multiplier(columns['speedup'][best])}"
    )
    return {
        "position": f"Acceptance by position: {rates}; {alpha}.",
        "length": f"Tokens a round over draft length: {lengths or 'none measured'}; {alpha}.",
        "speedup": f"Speedup over draft length at c = {number(c)}, v = {number(v)}: {said}.",
    }


_ABOVE = {"xanchor": "center", "xshift": 0, "yshift": 17}
_BELOW = {"xshift": 4, "yshift": -16}
_BELOW_RIGHT = {"xanchor": "right", "xshift": 0, "yshift": -9}


def _decay_color(mode: Mode) -> str:
    return HUES[mode][0]


def _figure(
    data: list[Fields], notes: list[Fields], mode: Mode, *, right: int = 8, **axes: Fields
) -> Fields:
    margin = {"l": 46, "r": right, "t": 12, "b": 44, "pad": 0}
    return {
        "data": data,
        "layout": layout_fields(mode, HEIGHT, margin=margin, annotations=notes, **axes),
    }


def _axis(title: str, low: float, high: float, step: float | None, **fields: Any) -> Fields:
    axis = {
        "title": {"text": title, "standoff": 8},
        "range": [low, high],
        "automargin": False,
        "showgrid": False,
        **fields,
    }
    return axis if step is None else {**axis, "dtick": step, "tick0": 0}


def _ticks(last: int) -> int:
    return 1 if last <= 10 else 2 if last <= 20 else 5


def _line(
    x: Sequence[float], y: Sequence[float], name: str, mode: Mode, color: str, dash: str
) -> Fields:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": list(x),
        "y": list(y),
        "line": {"color": color, "width": 2, "dash": dash},
        "hovertemplate": f"{name} at %{{x}}: %{{y:.3f}}<extra></extra>",
    }


def _points(x: Sequence[float], y: Sequence[float], hover: str, mode: Mode) -> Fields:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": list(x),
        "y": list(y),
        "marker": {"size": 8, "color": INK[mode], "line": {"width": 1.5, "color": INK[mode]}},
        "hovertemplate": f"{hover}<extra></extra>",
    }


def _note(x: float, y: float, text: str, color: str) -> Fields:
    """A label to the right of a point."""
    return {
        "x": x,
        "y": y,
        "text": text,
        "showarrow": False,
        "xanchor": "left",
        "xshift": RIGHT,
        "yshift": 0,
        "font": {"size": 12, "color": color},
    }


def _apart(notes: list[Fields], high: float) -> list[Fields]:
    """Labels at the right edge moved apart, so that none covers another."""
    height = HEIGHT - 56
    placed: list[float] = []
    for note in sorted((n for n in notes if n["xshift"] == RIGHT), key=lambda n: n["y"]):
        at = note["y"] / high * height
        wanted = max(at, placed[-1] + 16) if placed else at
        note["yshift"] = wanted - at
        placed.append(wanted)
    return notes
