"""Operators that run gangs where a contract offers them: beside the slot's Job, which owns their object."""
