"""`python -m exampp`."""

from exampp.cli.main import main

main()
