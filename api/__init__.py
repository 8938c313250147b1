"""What users call with a target by its name, and a schedule, program or model: several folders take part in each."""
