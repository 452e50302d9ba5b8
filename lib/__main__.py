"""`python -m lib`: the same work without a browser."""

from lib.cli import main

main()
