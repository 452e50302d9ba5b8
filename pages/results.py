"""What did we measure, and can it be trusted? Files in, what was understood, the catalogue."""

import streamlit as st

from lib.ui import chips, drop, inbox, staging, study, study_runs

chips.question("What did we measure, and can it be trusted?")
store = study.store()
drop.zone(store)
inbox.status()
drop.outcome(store)
if staging.current().files:
    drop.files(store)
    if staging.current().runs:
        drop.complete()
    drop.add(store)
st.divider()
study_runs.catalogue_of(store)
