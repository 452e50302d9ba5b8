"""The live side: what to run next, and what the server says while it runs."""
