"""Closed forms of speculative decoding: numpy in, numpy out, no state."""
