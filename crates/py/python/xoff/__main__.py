"""`python -m xoff` is the command line."""

from . import _main

_main()
