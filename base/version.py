"""The version of loopwright, for all that must write it down: the package, records, caches."""

VERSION = "0.1.0"
