"""Findings to dollars: measured throughput only, never the theorem."""
