"""A compiled corpus unit for the tests that need one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from sobolev_novelty.engines.transformer.corpus import library
from sobolev_novelty.engines.transformer.corpus.build import build
from sobolev_novelty.errors import KernelError


@pytest.fixture(scope="session")
def corpus_unit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The unit that was built with the package, or one compiled for these tests."""
    with pytest.MonkeyPatch.context() as patch:
        try:
            library.native()
        except KernelError:
            if shutil.which("cc") is None:
                pytest.skip("no C compiler, and the corpus unit was not built")
            patch.setenv("SOBOLEV_CORPUS", str(build(tmp_path_factory.mktemp("unit"))))
        yield
    library.native.cache_clear()
