"""Figures, text and documents made from findings; no Streamlit."""
