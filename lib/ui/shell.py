"""The script that every session runs: what all pages share, then the page itself."""

from pathlib import Path

import streamlit as st

from lib.ui import inputs, navigation, study

STYLE = Path(__file__).with_name("shell.css")

st.set_page_config(page_title="Draftworth", page_icon="🪶", layout="wide")
st.html(STYLE)
page = navigation.choose()
inputs.begin()
with st.sidebar:
    st.html('<div class="wordmark">Draftworth</div><div class="motto">Is the draft worth it?</div>')
    study.picker()
    navigation.draw_menu()
inputs.show_ignored()
page.run()
