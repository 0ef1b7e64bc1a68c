"""What every service stands on: settings, clocks, logs, telemetry, health, HTTP, the message loop, lifecycle."""
