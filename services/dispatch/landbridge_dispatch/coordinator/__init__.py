"""The centre of dispatch: who owns each placement, and the lifecycle of every operation."""
