"""Step times on the GPU at hand: what drafting costs, and where verification stops being free."""
