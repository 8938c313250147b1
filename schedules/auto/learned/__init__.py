"""What corrects the analytic model of a core: boosted trees on features of the loop nest and of the trace."""
