"""The format of lines that are no records: an older loopwright, which knows none, takes them for records to come."""

NOTE_FORMAT = 3
