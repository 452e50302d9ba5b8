"""What a reviewer takes home of a price: workbook, page, tables; each is made on the click."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st

from lib import decision
from lib.errors import InputError
from lib.evidence.findings import Findings
from lib.money.pricing import PricedPair
from lib.report import page, tables_zip, workbook
from lib.report.dossier import PRICED_INPUTS, Dossier, Origin, file_stem, input_rows, utc_now
from lib.ui import (
    carried,
    chosen_rate,
    consent,
    decision_cards,
    inputs,
    scenarios,
    schedule_card,
    study,
)

TYPED = "typed on the price page"


def draw(found: Findings, priced: Mapping[str, tuple[PricedPair, ...]]) -> None:
    """The popover of downloads for a reviewer, filled when it is opened."""
    box = st.popover(
        "Workbook, report, CSV",
        icon=":material/download:",
        type="tertiary",
        key="deliverables",
        on_change="rerun",
    )
    if not box.open:
        return
    taken = dossier(found, priced)
    name = f"draftworth-{file_stem(found.study.name)}"
    with box:
        st.caption(
            "The figures as they stand, with every input, run and formula behind them. Links carry "
            "the same inputs."
        )
        _button(
            "Workbook with live formulas",
            partial(workbook.build, taken, _files(found)),
            f"{name}.xlsx",
            workbook.MEDIA_TYPE,
        )
        _button("Report to print", partial(page.build, taken), f"{name}.html", "text/html")
        _button(
            "Every table as CSV",
            partial(tables_zip.build, taken),
            f"{name}-csv.zip",
            tables_zip.MEDIA_TYPE,
        )


def dossier(found: Findings, priced: Mapping[str, tuple[PricedPair, ...]]) -> Dossier:
    """The price as it stands on the page, with the steps of the decision."""
    now = utc_now()
    result = decision.verdict(found, study.operating_load(), study.stated())
    return Dossier(
        found=found,
        priced=priced,
        rate=study.rate(),
        inputs=input_rows(
            {key: inputs.value(key) for key in inputs.table()},
            TYPED,
            f"{now:%Y-%m-%d}",
            _origins(f"{now:%Y-%m-%d}"),
        ),
        written_at=now,
        slo=study.slo(),
        load=study.operating_load(),
        tokens_per_day=inputs.value("tokens_per_day"),
        stated=study.stated(),
        accept_random=consent.random_ok(),
        scenario=_scenario(),
        gates=decision_cards.steps(found, result, schedule_card.build(found)),
    )


def _scenario() -> str:
    """The id of what is chosen; empty for what no link may say."""
    try:
        return scenarios.now().hash
    except InputError:
        return ""


def _origins(today: str) -> dict[str, Origin]:
    """Where the price's inputs come from, of those that were not typed."""
    dated = {chosen_rate.KEY: chosen_rate.effective() or today}
    kept = {key: carried.origin(key) for key in PRICED_INPUTS}
    return {key: (*o, dated.get(key, today)) for key, o in kept.items() if o is not None}


def _files(found: Findings) -> dict[str, str]:
    """Names of the study's files by their digest; none of a study that is not in the store."""
    opened = study.store()
    if found.study.read_only or opened is None:
        return {}
    return {s.sha256: s.name for s in opened.sources(found.study.name)}


def _button(label: str, data: Any, file: str, mime: str) -> None:
    st.download_button(
        label, data, file, mime, key=f"save-{mime}", on_click="ignore", width="stretch"
    )
