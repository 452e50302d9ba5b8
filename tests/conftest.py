"""What every test runs under."""

from hypothesis import settings

# A deadline is a timed assertion, and machines are shared.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
