"""`python -m paraagent`: the command line without its console script."""

from paraagent.cli import app

if __name__ == "__main__":
    app(prog_name="paraagent")
