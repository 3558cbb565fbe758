"""Compile the corpus unit where the package was not built.

``python -m sobolev_novelty.engines.transformer.corpus.build``

It needs a C compiler and nothing else. The library goes beside this file, or into the folder that is given; the
environment variable SOBOLEV_CORPUS names a library elsewhere.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from pathlib import Path

from sobolev_novelty.engines.transformer.corpus.library import HERE, LIBRARY
from sobolev_novelty.errors import KernelError

SOURCE = HERE / "native" / "corpus.c"
#: Sums are not reordered and not contracted, so that a formula is the same on every machine up to its C library.
FLAGS = ("-std=gnu11", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fvisibility=hidden")


def build(folder: Path = HERE, *, compiler: str | None = None, portable: bool = False) -> Path:
    """Compile into ``folder`` and return the library's path.

    ``portable``: use no instruction that other machines of this kind may lack.
    """
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / LIBRARY
    unfinished = folder / f"{LIBRARY}.{os.getpid()}"
    flags = FLAGS if portable else (*FLAGS, "-march=native")
    command = [
        compiler or os.environ.get("CC", "cc"),
        *flags,
        "-shared",
        "-fPIC",
        "-o",
        str(unfinished),
        str(SOURCE),
        "-lm",
    ]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise KernelError(f"The C compiler '{command[0]}' was not found. Install one, or name it in CC.") from error
    except subprocess.CalledProcessError as error:
        raise KernelError(f"'{' '.join(command)}' failed:\n{error.stderr}") from error
    os.replace(unfinished, target)
    return target


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Compile the corpus unit.")
    parser.add_argument("folder", nargs="?", type=Path, default=HERE, help="where the library goes")
    parser.add_argument("--portable", action="store_true", help="no instructions that other machines may lack")
    arguments = parser.parse_args()
    print(build(arguments.folder, portable=arguments.portable))  # noqa: T201


if __name__ == "__main__":
    main()
