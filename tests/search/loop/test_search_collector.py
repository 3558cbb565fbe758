import gc

import pytest

from sobolev_novelty.search.loop.collector import RARER, rare_collections


def test_thresholds_come_back_when_the_last_of_several_searches_ends() -> None:
    before = gc.get_threshold()
    first, second = rare_collections(), rare_collections()
    first.__enter__()
    second.__enter__()
    assert gc.get_threshold() == (RARER * before[0], *before[1:])
    first.__exit__(None, None, None)
    assert gc.get_threshold() == (RARER * before[0], *before[1:])
    second.__exit__(None, None, None)
    assert gc.get_threshold() == before


def test_thresholds_come_back_after_an_error() -> None:
    before = gc.get_threshold()
    with pytest.raises(KeyError), rare_collections():
        raise KeyError
    assert gc.get_threshold() == before


def test_a_collector_that_was_switched_off_stays_off() -> None:
    before = gc.get_threshold()
    gc.set_threshold(0, *before[1:])
    try:
        with rare_collections():
            assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*before)
