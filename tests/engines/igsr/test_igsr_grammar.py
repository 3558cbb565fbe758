"""The grammar that servers are given, and the sampler that needs none: both write what our parser reads."""

from __future__ import annotations

import json
import random
import re

import numpy as np
import pytest

from sobolev_novelty.engines.igsr.grammar import gbnf, json_schema
from sobolev_novelty.engines.igsr.sampler import GrammarSampler
from sobolev_novelty.engines.igsr.talk.answers import read_answer
from sobolev_novelty.engines.igsr.talk.protocol import Proposer, Question, Vocabulary
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.search.contract.engine import DEFAULT_OPERATORS, GuessSource
from sobolev_novelty.search.fit.forms import split_form

NAMES = ("x0", "body mass", 'odd "name"')
RANGES = ((0.5, 2.0), (-1.0, 1.0), (0.0, 3.0))
OPERATOR_SETS = [DEFAULT_OPERATORS, ("add", "mul", "sin"), ("mul",), ("exp", "pow"), ("add",), ("div", "sqrt")]

_PIECE = re.compile(r'"((?:[^"\\]|\\.)*)"|\[0-9\]|([a-z][a-z0-9]*)|([()|?])')


class Drawn:
    """Texts of a GBNF grammar, by a generator written for this test."""

    def __init__(self, grammar: str, seed: int) -> None:
        bodies = dict(line.split(" ::= ", 1) for line in grammar.splitlines())
        self.rules = {name: [match[0] for match in _PIECE.finditer(body)] for name, body in bodies.items()}
        self.rng = random.Random(seed)

    def text(self) -> str:
        return self.sequence(self.rules["root"])

    def sequence(self, tokens: list[str]) -> str:
        tokens = self.rng.choice(_alternatives(tokens))
        text, place = "", 0
        while place < len(tokens):
            end = _end(tokens, place)
            is_left_out = end < len(tokens) and tokens[end] == "?" and self.rng.random() < 0.5
            text += "" if is_left_out else self.piece(tokens[place:end])
            place = end + (end < len(tokens) and tokens[end] == "?")
        return text

    def piece(self, tokens: list[str]) -> str:
        first = tokens[0]
        if first == "(":
            return self.sequence(tokens[1:-1])
        if first.startswith('"'):
            return str(json.loads(first))
        return str(self.rng.randrange(10)) if first == "[0-9]" else self.sequence(self.rules[first])


def _end(tokens: list[str], place: int) -> int:
    depth = 0
    while True:
        depth += (tokens[place] == "(") - (tokens[place] == ")")
        place += 1
        if depth == 0:
            return place


def _alternatives(tokens: list[str]) -> list[list[str]]:
    found: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token == "(") - (token == ")")
        if token == "|" and depth == 0:
            found.append([])
        else:
            found[-1].append(token)
    return found


@pytest.mark.parametrize("operators", OPERATOR_SETS)
def test_whatever_the_grammar_allows_is_read(operators: tuple[str, ...]) -> None:
    vocabulary = Vocabulary(NAMES, operators, RANGES)
    drawn = Drawn(gbnf(vocabulary, 5), seed=0)
    for _ in range(40):
        lines = drawn.text().splitlines()
        assert len(lines) == 5
        for line in lines:
            found = read_answer(line, vocabulary, max_terms=8)
            # Numbers may cancel an input: x0 - x0, or 0*x0 inside a function.
            assert found.n_malformed == 0 or not _has_variables(line, vocabulary), line


def _has_variables(line: str, vocabulary: Vocabulary) -> bool:
    from sobolev_novelty.language.parsing import parse

    return any(term.variables for term in split_form(parse(line, names=vocabulary.names)).terms)


def test_the_grammar_of_no_terms_is_refused() -> None:
    with pytest.raises(ParameterError, match="'n_terms' must be at least 1. Got 0."):
        gbnf(Vocabulary(NAMES, ("add",), RANGES), 0)


def test_the_schema_wants_a_list_of_texts() -> None:
    schema = json_schema(Vocabulary(NAMES, ("add",), RANGES), 5)
    assert schema["properties"]["terms"]["items"] == {"type": "string"}
    assert "`body mass`" in schema["properties"]["terms"]["description"]


# --- the sampler


def question(operators: tuple[str, ...], seed: int, current: tuple[str, ...] = ()) -> Question:
    return Question("", "", Vocabulary(NAMES, operators, RANGES), current, 12, seed, "1")


@pytest.mark.parametrize("operators", OPERATOR_SETS)
def test_what_the_sampler_says_is_read(operators: tuple[str, ...]) -> None:
    n_lines = n_malformed = 0
    for seed in range(30):
        asked = question(operators, seed, ("x0*`body mass`",) if "mul" in operators else ("x0",))
        text = GrammarSampler().ask(asked).text
        found = read_answer(text, asked.vocabulary, max_terms=24)
        n_lines += found.n_offered
        n_malformed += found.n_malformed
    assert n_lines > 0 and n_malformed <= 0.1 * n_lines


def test_the_sampler_draws_from_its_seed_alone() -> None:
    ask = GrammarSampler().ask
    assert ask(question(DEFAULT_OPERATORS, 3)) == ask(question(DEFAULT_OPERATORS, 3))
    assert ask(question(DEFAULT_OPERATORS, 3)) != ask(question(DEFAULT_OPERATORS, 4))


def test_the_sampler_divides_by_and_takes_roots_of_what_allows_it() -> None:
    for seed in range(50):
        text = GrammarSampler().ask(question(("mul", "div", "sqrt"), seed)).text
        assert "/`body mass`" not in text and "sqrt(`body mass`)" not in text


def test_proposers_are_known_by_what_they_can_do() -> None:
    assert isinstance(GrammarSampler(), Proposer) and not isinstance(GrammarSampler(), GuessSource)
    assert not isinstance(np.zeros(2), Proposer)
