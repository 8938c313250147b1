"""Looking at what runs: times, profiles, comparisons with a reference."""
