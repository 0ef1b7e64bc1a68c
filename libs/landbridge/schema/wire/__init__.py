"""Structs for what services say to each other; generated."""
