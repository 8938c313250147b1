"""From a schedule to machine code: what ties lowering and code generation together."""
