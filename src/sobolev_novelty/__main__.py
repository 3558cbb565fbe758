"""``python -m sobolev_novelty`` is ``sobolev``."""

from sobolev_novelty.ui.cli.main import main

if __name__ == "__main__":
    main()
