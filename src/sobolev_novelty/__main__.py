"""``python -m sobolev_novelty`` is ``sobolev``."""

from sobolev_novelty.cli import main

if __name__ == "__main__":
    main()
