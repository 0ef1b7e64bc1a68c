"""Rules that operators write in CEL: read, checked by type before they are accepted, bounded, and evaluated.

The library that evaluates knows neither types nor bounds and gives no syntax tree, so expressions are parsed here as
well: only what this parser understands, and what its types allow, ever reaches it.
"""
