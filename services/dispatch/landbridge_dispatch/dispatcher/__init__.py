"""The dispatcher of one environment: claims what it can hold, runs it, reports it, whether the centre is there or not."""
