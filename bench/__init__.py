"""Speed as ratios to a floor measured in the same run; `python -m bench` runs every row."""
