"""`python -m passhat`."""

from passhat.cli import main

main(prog_name="passhat")
