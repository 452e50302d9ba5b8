"""One reader for each tool whose result files are known."""
