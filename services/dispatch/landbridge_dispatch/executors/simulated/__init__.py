"""Work that is only made up: declared durations and outcomes, for tests, planning and measuring the control plane."""
