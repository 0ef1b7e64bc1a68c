"""Runs in pods, with Python's standard library alone: carries files between a pod and S3-compatible stores.

Nothing here imports anything of the rest: these files are mounted, and run in an image of the site.
"""
