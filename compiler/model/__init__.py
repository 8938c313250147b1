"""Makes a compiled model of a planned graph: functions are lowered and compiled by workers, cached, and placed in
memory."""
