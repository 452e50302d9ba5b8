"""A change of speed between two groups of runs, as acceptance and step time, in sentences."""

from lib.evidence.acceptance_groups import Group
from lib.report.format import percent
from lib.theory import mixing


def split_lines(first: Group, second: Group) -> list[str]:
    """What part of a change of speed is acceptance, and what is step time."""
    ratio = _speed_ratio(first, second)
    if ratio is None:
        return ["Neither tok/s at one load nor TPOT is recorded in both."]
    name, speed = ratio
    a, b = first.acceptance.tau.value, second.acceptance.tau.value
    parts = mixing.split(a, b, speed)
    share = parts.acceptance_share
    same = _same_length(first, second)
    said = [
        f"τ {a:.3f} → {b:.3f} ({_change(parts.tau_ratio)}), {name} {_change(speed)}, step time "
        f"{_change(parts.step_ratio)}."
    ]
    if same:
        said.append(
            "The two τ are not distinguishable at 95 %: what of the change is acceptance, is open."
        )
    elif share is not None and abs(speed - 1) > 0.005:
        what = "loss" if speed < 1 else "gain"
        if share > 1:
            said.append(
                f"Acceptance explains all of the {what} and more: compare prompts, template and "
                "version before kernels."
            )
        elif share < 0:
            said.append(f"The {what} is step time alone; acceptance works against it.")
        else:
            said.append(f"{percent(share)} of the {what} is acceptance, the rest step time.")
    rates, speeds = [g.acceptance.rate for g in (first, second)], (1.0, speed)
    known = [r for r in rates if r]
    varies = first.acceptance.gamma is None and second.acceptance.gamma is None
    if len(known) == 2 and varies and mixing.rate_says_little(known, speeds):
        said.append(
            "Equal rates, unequal speed: with a variable draft length accepted over drafted is not "
            "α. Keep these apart."
        )
    return said


def _same_length(first: Group, second: Group) -> bool:
    """Whether both lengths have a standard error and differ by no more than these explain."""
    a, b = first.acceptance.tau, second.acceptance.tau
    if a.se is None or b.se is None:
        return False
    return not mixing.distinguishable(a.value, a.se, b.value, b.se)


def _speed_ratio(first: Group, second: Group) -> tuple[str, float] | None:
    same_load = first.place.load == second.place.load
    if same_load and first.output_tps and second.output_tps:
        return "tok/s", second.output_tps / first.output_tps
    if first.tpot_ms and second.tpot_ms:
        return "speed by TPOT", first.tpot_ms / second.tpot_ms
    return None


def _change(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.1f} %".replace("-", "−")
