"""ParaAgent: find and call tools among tens of thousands, several at a time, and train the agent that does it."""

__version__ = "0.1.0"
