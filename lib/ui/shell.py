"""The script that every session runs: what all pages share, then the page itself."""

from pathlib import Path

import streamlit as st

from lib.ui import chosen_rate, inputs, navigation, study

HERE = Path(__file__).parent

st.set_page_config(page_title="Draftworth", page_icon=HERE / "feather.svg", layout="wide")
st.html(HERE / "shell.css")
page = navigation.choose()
inputs.begin()
chosen_rate.begin()
with st.sidebar:
    st.html('<div class="wordmark">Draftworth</div><div class="motto">Is the draft worth it?</div>')
    study.picker()
    navigation.draw_menu()
inputs.show_ignored()
page.run()
