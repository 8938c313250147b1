"""The scheduler: schedules and their primitives, their realization as loop nests, and the passes that lower those."""
