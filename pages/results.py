"""What did we measure, and can it be trusted? Files in, what was understood, the catalogue."""

import streamlit as st

from lib.ui import chips, drop, staging, study, study_runs

chips.question("What did we measure, and can it be trusted?")
store = study.store()
drop.zone()
drop.outcome()
if staging.current().files:
    drop.files()
    if staging.current().runs:
        drop.complete()
    drop.add(store)
st.divider()
study_runs.catalogue_of(store)
