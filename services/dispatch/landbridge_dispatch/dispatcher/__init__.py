"""The dispatcher of one environment: claims what it can hold, runs it, reports it, centre or no centre."""
