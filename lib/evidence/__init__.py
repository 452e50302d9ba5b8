"""Evidence: runs to findings. What pairs, which arm wins at which load, where that changes."""
