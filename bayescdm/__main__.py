"""The program ``bayescdm``, also run as ``python -m bayescdm``."""

from bayescdm.interrupts import program_begins


def main() -> None:
    """Import the commands and run the one that is asked for."""
    program_begins()
    # Only now: most of the time before a command runs goes into imports.
    from bayescdm.cli import app

    app(prog_name="bayescdm")


if __name__ == "__main__":
    main()
