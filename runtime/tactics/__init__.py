"""Tactics: what may serve a call of an operator instead of its compiled code, and how engines choose."""
