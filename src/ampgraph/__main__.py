"""``python -m ampgraph`` is the command ``ampgraph``."""

from ampgraph.cli import main

if __name__ == "__main__":
    main()
