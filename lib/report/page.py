"""The price as one HTML page that prints: no script, no request, every number with its source."""

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence

from lib.decision import MARKS, Gate
from lib.estimate import Basis, Estimate
from lib.money.bases import token_prices
from lib.report import svg
from lib.report.dossier import QUESTION, Dossier, InputRow, PairRow, Side
from lib.report.format import estimate as estimate_text
from lib.report.format import load as load_text
from lib.report.format import money, multiplier, number, percent, plain_html
from lib.report.load_figures import at_load, load_title, multiplier_figure, off_labels
from lib.report.price_figures import price_figure
from lib.report.price_tables import basis_table, ratio_sentence
from lib.report.price_text import saving_lines, unpriced_lines
from lib.report.sentences import crossing_lines
from lib.run import OFF

STYLE = """
@page { margin: 14mm; @bottom-right { content: counter(page) " / " counter(pages); } }
* { box-sizing: border-box; }
body { font: 14px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif;
  color: #1f2933; background: #fff; max-width: 900px; margin: 24px auto; padding: 0 16px; }
h1 { font-size: 17px; font-weight: 600; color: #55606e; margin: 0 0 6px; }
h2 { font-size: 16px; margin: 26px 0 8px; break-after: avoid; }
.answer { font-size: 22px; line-height: 1.3; font-weight: 600; margin: 4px 0 8px; }
.small, .source { color: #55606e; font-size: 12px; }
.how { font-family: ui-monospace, "Liberation Mono", monospace; font-size: 12px;
  background: #f4f6f8; padding: 8px 10px; margin: 8px 0; overflow-wrap: anywhere; }
.chip { display: inline-block; border: 1px solid #9aa5b1; border-radius: 9px; padding: 0 8px;
  font-size: 11px; line-height: 17px; white-space: nowrap; }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; font-size: 12px;
  margin: 12px 0; }
.facts dt { color: #55606e; } .facts dd { margin: 0; overflow-wrap: anywhere; }
.metrics { display: grid; grid-template-columns: repeat(auto-fit, minmax(130px, 1fr)); gap: 8px;
  margin: 12px 0; break-inside: avoid; }
.metrics div { border: 1px solid #dde3e8; border-radius: 6px; padding: 8px 10px; }
.metrics b { display: block; font-size: 19px; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 12px; }
th, td { text-align: left; vertical-align: top; padding: 3px 8px 3px 0;
  border-bottom: 1px solid #e3e7eb; }
th { color: #55606e; font-weight: 600; } .n { text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
td.name { overflow-wrap: anywhere; }
tr, .gate, figure, .keep { break-inside: avoid; } thead { display: table-header-group; }
figure { margin: 12px 0; } figcaption { font-weight: 600; margin-bottom: 4px; }
svg { width: 100%; height: auto; display: block; font-family: inherit; }
.gate { border: 1px solid #dde3e8; border-radius: 6px; padding: 7px 10px; margin: 6px 0; }
.gate p { margin: 3px 0 0; } ul { padding-left: 18px; margin: 6px 0; }
@media print { svg { max-height: 76mm; } .metrics { grid-template-columns: repeat(6, 1fr); }
  .metrics b { font-size: 15px; } body { margin: 0; max-width: none; padding: 0; font-size: 11px; }
  .wide { overflow: visible; } th, td { font-size: 9.5px; padding-right: 5px; }
  .answer { font-size: 17px; } }
"""


def build(dossier: Dossier) -> str:
    """The whole page as HTML text."""
    style = b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'"
    title = f"{QUESTION} {dossier.found.study.title or dossier.found.study.name}"
    body = "\n".join(part for part in _parts(dossier) if part)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{plain_html(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n"
        "</body>\n</html>\n"
    )


def _chip(basis: Basis | str) -> str:
    return f'<span class="chip">{plain_html(basis)}</span>'


def _parts(dossier: Dossier) -> Iterator[str]:
    yield _answer(dossier)
    yield _facts(dossier)
    yield _metrics(dossier)
    yield _saving(dossier)
    yield from _figures(dossier)
    yield _section("Prices", _prices(dossier), _lines(unpriced_lines(dossier.priced)))
    yield _section("Multipliers", _multipliers(dossier), _lines(crossing_lines(dossier.found)))
    if dossier.gates:
        yield _section("The decision, step by step", *(_gate(g) for g in dossier.gates))
    yield _bases(dossier)
    yield _section("Inputs", _inputs(dossier.inputs))
    yield _section("Runs behind the prices", _runs(dossier.sides))
    yield _section("What to know", _lines(dossier.notes))


def _section(title: str, *parts: str) -> str:
    return f"<h2>{plain_html(title)}</h2>\n" + "\n".join(p for p in parts if p)


def _lines(lines: Iterable[str]) -> str:
    items = "".join(f"<li>{plain_html(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


def _answer(dossier: Dossier) -> str:
    sentence, estimate, _ = dossier.answer
    text = f'<h1>{plain_html(QUESTION)}</h1>\n<p class="answer">{plain_html(sentence)}</p>'
    if estimate is None:
        return text
    text += (
        f'<p>{_chip(estimate.basis)} <span class="source">{plain_html(estimate.source)}</span></p>'
        f'<p class="how">{plain_html(estimate.how)}</p>'
    )
    if dossier.found.study.caveat:
        text += f"<p><b>{plain_html(dossier.found.study.caveat)}</b></p>"
    return text


def _facts(dossier: Dossier) -> str:
    study = dossier.found.study
    load = "not named" if dossier.load is None else at_load(dossier.load, dossier.found)
    facts = {
        "Study": study.title or study.name,
        "Measured": study.heading,
        "Citation": " ".join(filter(None, (study.citation, study.url))),
        "Operating load": load,
        "Service level": dossier.slo.text if dossier.slo else "SLO unknown: none was named",
        "Price dates": dossier.price_dates,
        "Scenario": dossier.scenario or "no id",
        "SHA-256 of the runs": dossier.digest,
        "Written": f"{dossier.written_at:%Y-%m-%d %H:%M} UTC",
    }
    rows = "".join(
        f"<dt>{plain_html(k)}</dt><dd>{plain_html(v)}</dd>" for k, v in facts.items() if v
    )
    return f'<dl class="facts">{rows}</dl>'


def _metrics(dossier: Dossier) -> str:
    _, _, pair = dossier.answer
    if pair is None or pair.complete is None:
        return ""
    off, on, saving = pair.complete
    even, extra = pair.break_even_multiplier, pair.break_even_extra_usd_per_hour
    shown = [
        ("$/1M output, without", money(off.value), off.basis),
        ("$/1M output, with", money(on.value), on.basis),
        ("Saving", percent(saving.value), saving.basis),
        ("Multiplier M", multiplier(pair.multiplier), dossier.found.study.basis),
    ]
    if even is not None and extra is not None:
        shown += [
            ("Break-even M", multiplier(even), Basis.DERIVED),
            ("Break-even extra", f"{money(extra)}/h", Basis.DERIVED),
        ]
    cells = "".join(
        f'<div><span class="small">{plain_html(name)}</span>'
        f"<b>{plain_html(text)}</b>{_chip(basis)}</div>"
        for name, text, basis in shown
    )
    return f'<div class="metrics">{cells}</div>'


def _saving(dossier: Dossier) -> str:
    _, _, pair = dossier.answer
    if pair is None:
        return ""
    lines = saving_lines(pair, dossier.tokens_per_day, dossier.rate.utilization)
    if dossier.tokens_per_day is None:
        return ""
    typed = next((i for i in dossier.inputs if i.key == "tokens_per_day"), None)
    said = f"{_chip(typed.basis)} demand, {typed.source}" if typed else ""
    return _section(
        "Saving a month",
        f'<div class="keep">{_lines(lines)}<p class="source">{said}</p></div>',
    )


def _bases(dossier: Dossier) -> str:
    """The answer's prices over other tokens, where their ratio is known."""
    _, _, pair = dossier.answer
    row = next((r for r in dossier.rows if r.pair is pair), None)
    ratio = None if row is None else dossier.input_per_output(row)
    if row is None or pair is None or pair.complete is None or ratio is None:
        return ""
    weight = dossier.value("input_weight")
    columns = basis_table(*(token_prices(p, ratio, weight) for p in pair.complete[:2]))
    cells = [["–" if c is None else plain_html(str(c)) for c in col] for col in columns.values()]
    return _section(
        "The same bill over other tokens",
        _table([*columns], zip(*cells, strict=True), (1, 2, 3, 4)),
        f'<p class="source">{_chip(pair.complete[1].basis)} '
        f"{plain_html(ratio_sentence(ratio, row.input_per_output is None))}</p>",
    )


def _figures(dossier: Dossier) -> Iterator[str]:
    found = dossier.found
    sentence = dossier.answer[0]
    if any(p.on.price or p.off.price for rows in dossier.priced.values() for p in rows):
        drawn = price_figure(dossier.priced, off_labels(found), "light", load_title(found))
        alt = f"Price per million output tokens over load. {sentence}"
        yield _figure("$ per 1M output tokens over load", svg.of(drawn, alt, "price"), dossier)
    if any(a.points for a in found.arms) and found.finite_loads:
        drawn = multiplier_figure(found, "light")
        yield _figure(
            f"Multiplier on {found.metric.label.lower()}",
            svg.of(drawn, "Multiplier over load, with its 95 % interval.", "multiplier"),
            dossier,
        )


def _figure(title: str, drawing: str, dossier: Dossier) -> str:
    study = dossier.found.study
    said = " · ".join(filter(None, (study.caveat, study.citation)))
    return (
        f"<figure><figcaption>{plain_html(title)}</figcaption>{drawing}"
        f'<p class="source">{_chip(study.basis)} {plain_html(said)}</p></figure>'
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int]) -> str:
    """A table of safe HTML cells; `numbers` are the columns that align right."""

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(
            f'<{tag} class="{"n" if i in numbers else "name"}">{cell}</{tag}>'
            for i, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return (
        f'<div class="wide"><table><thead><tr>{cells("th", heads)}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _usd(estimate: Estimate | None) -> str:
    if estimate is None:
        return "–"
    return plain_html(estimate_text(estimate).removesuffix(" per 1M output tokens"))


def _share(estimate: Estimate | None) -> str:
    if estimate is None:
        return "–"
    if estimate.low is None or estimate.high is None:
        return percent(estimate.value)
    return f"{percent(estimate.value)} ({percent(estimate.low)} to {percent(estimate.high)})"


def _prices(dossier: Dossier) -> str:
    def row(one: PairRow) -> list[str]:
        off, on = one.off.priced, one.on.priced
        why = "; ".join(
            f"{name} {side.why_not}" for name, side in ((OFF, off), (one.label, on)) if side.why_not
        )
        price = on.price or off.price
        source = f"{_chip(price.basis)} {plain_html(price.source)}" if price else ""
        slo = on.slo if on.slo == off.slo else f"{off.slo} without, {on.slo} with"
        return [
            plain_html(one.label),
            load_text(on.load),
            _usd(off.price),
            _usd(on.price),
            _share(one.pair.saving),
            plain_html(slo),
            source + (f" {plain_html(why)}" if why else ""),
        ]

    heads = ("arm", "load", "$/1M without", "$/1M with", "saving", "SLO", "basis and source")
    return _table(heads, map(row, dossier.rows), (1, 2, 3, 4))


def _multipliers(dossier: Dossier) -> str:
    def row(one: PairRow) -> list[str]:
        ratio, (even, extra) = one.ratio, one.break_evens
        return [
            plain_html(one.label),
            load_text(ratio.load),
            multiplier(ratio.multiplier, *(ratio.interval() or (None, None))),
            plain_html(ratio.mark()),
            "–" if even is None else multiplier(even),
            "–" if extra is None else f"{money(extra)}/h",
            f"{_chip(dossier.found.study.basis)} {ratio.n_off} and {ratio.n_on} runs",
        ]

    heads = ("arm", "load", "M", "mark (95 % each)", "break-even M", "break-even extra", "runs")
    return _table(heads, map(row, dossier.rows), (1, 2, 4, 5))


def _gate(gate: Gate) -> str:
    basis = _chip(gate.basis) if gate.basis is not None else ""
    known = f"<p>{plain_html(gate.known)}</p>" if gate.known else ""
    missing = f'<p class="small">{plain_html(gate.missing)}</p>' if gate.missing else ""
    return (
        f'<div class="gate"><b>{MARKS[gate.state]} {plain_html(gate.title)}</b> '
        f"<span>{plain_html(gate.state)}</span> {basis}{known}{missing}</div>"
    )


def _inputs(rows: Sequence[InputRow]) -> str:
    def row(one: InputRow) -> list[str]:
        value = one.value
        if value is None:
            return [plain_html(one.label), "not typed", plain_html(one.unit), "", "", ""]
        shown = number(value * 100) if one.unit.startswith("%") else f"{value:,.12g}"
        return [
            plain_html(one.label),
            shown,
            plain_html(one.unit),
            _chip(one.basis),
            plain_html(one.source),
            plain_html(one.dated),
        ]

    heads = ("input", "value", "unit", "basis", "source", "as of")
    return _table(heads, map(row, rows), (1,))


def _runs(sides: Sequence[Side]) -> str:
    def row(side: Side) -> list[str]:
        first = side.runs[0]
        values = [r.output_tps if r.output_tps is not None else r.multiplier for r in side.runs]
        files = ", ".join(dict.fromkeys((r.source_sha256 or "")[:12] for r in side.runs))
        usd = side.priced.usd_per_hour
        return [
            plain_html(side.name),
            ", ".join("–" if v is None else f"{v:,.6g}" for v in values),
            "–" if usd is None else f"{money(usd)}/h",
            plain_html(" ".join(filter(None, (first.tool, first.tool_version)))),
            plain_html(files),
        ]

    heads = (
        "arm and load",
        "output tok/s of each run",
        "$/h of the deployment",
        "tool",
        "SHA-256 of the files",
    )
    return _table(heads, map(row, sides), (2,))
