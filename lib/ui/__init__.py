"""The interface: the shell, the menu, inputs and how an estimate looks. Streamlit lives here."""
