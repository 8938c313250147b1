"""Which implementation serves a call: by tuning records, else by conditions, priorities and costs."""
