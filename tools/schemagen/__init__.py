"""Turns the protobuf contracts into Python models, JSON Schema and reference pages."""
