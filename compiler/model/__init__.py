"""From a planned graph to a compiled model: functions lowered and compiled by workers, cached, and placed in memory."""
