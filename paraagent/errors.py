"""Errors meant for a person: one sentence that says what is wrong, where, and what to do.

The command line prints the message alone and exits with `exit_code`; a traceback appears only with `--debug`.
Errors meant for the *model* are observations and live in `paraagent.paraact.executor`.
"""


class ParaAgentError(Exception):
    """A failure that a person can act on; `str(error)` is the whole message."""

    exit_code = 1


class UsageError(ParaAgentError):
    """The request itself is wrong: an unknown name, a wrong type, a malformed file."""

    exit_code = 2


class RunError(ParaAgentError):
    """The request was fine, the work failed: no network, a full disk, a broken contract."""


class NetworkError(RunError):
    """Nothing answered: worth another try later, which Prefect makes for stages that talk to the network."""


class InterruptedRunError(ParaAgentError):
    """Ctrl-C, or a polite request to stop: nothing is wrong."""

    exit_code = 130
