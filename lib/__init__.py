"""Draftworth: does speculative decoding pay for this deployment, up to which load, for how much."""
