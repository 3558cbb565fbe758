"""The tree search over sets of terms: what it asks, what it keeps, what feedback changes, and what it costs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sobolev_novelty as sn
from llm_server import Handler, chat_server, saying
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import Sample
from sobolev_novelty.engines.igsr.additive import Additive, Parts
from sobolev_novelty.engines.igsr.engine import IGSR
from sobolev_novelty.engines.igsr.feedback import FEEDBACK, Parent
from sobolev_novelty.engines.igsr.ledger import Ledger, Limits
from sobolev_novelty.engines.igsr.sampler import GrammarSampler
from sobolev_novelty.engines.igsr.talk.answers import Reading
from sobolev_novelty.engines.igsr.talk.chat import ChatProposer
from sobolev_novelty.engines.igsr.talk.protocol import Answer, Question, Vocabulary
from sobolev_novelty.engines.igsr.talk.transcript import Transcript
from sobolev_novelty.engines.igsr.tree import Node, select
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.metric.guidance import feedback
from sobolev_novelty.search.contract.engine import Problem, SobolevGuidance
from sobolev_novelty.search.loop.loop import Budget
from sobolev_novelty.search.model.regressor import SymbolicRegressor

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 2.0, (200, 3))
SAMPLE = Sample(np.ascontiguousarray(X.T), ("x0", "x1", "x2"))
Y = 2.0 * X[:, 0] * X[:, 1] + np.sin(2.0 * X[:, 2])


@dataclass(frozen=True)
class Scripted:
    """A proposer that says what it is told to, and remembers what it was asked."""

    texts: tuple[str, ...]
    asked: list[Question] = field(default_factory=list)
    model: str = "scripted"
    temperature: float = 0.0
    concurrency: int = 1
    n_terms: int = 4
    max_answer_tokens: int = 50

    def ask(self, question: Question) -> Answer:
        self.asked.append(question)
        return Answer(self.texts[min(len(self.asked), len(self.texts)) - 1], finish_reason="stop")

    def __deepcopy__(self, memo: dict[int, Any]) -> Scripted:
        return self  # scikit-learn clones engines: the test must see what was asked


def regressor(engine: Any = "genetic", n: int = 200, **options: Any) -> SymbolicRegressor:
    return SymbolicRegressor(engine, budget=Budget(max_evaluations=n), random_state=0, **options)


@dataclass
class Recording:
    """The grammar sampler, and what it was asked."""

    asked: list[Question]
    model: str = "grammar sampler"
    temperature: float = 1.0
    concurrency: int = 8
    n_terms: int = 24
    max_answer_tokens: int = 200

    def ask(self, question: Question) -> Answer:
        self.asked.append(question)
        return GrammarSampler().ask(question)

    def __deepcopy__(self, memo: dict[int, Any]) -> Recording:
        return self


def fitted(proposer: Any, *, novelty: bool = False, y: np.ndarray = Y, **options: Any) -> SymbolicRegressor:
    return regressor(IGSR(proposer, **options), novelty=novelty).fit(X, y)


# --- additive models


def errors(columns: np.ndarray, y: np.ndarray, n: int) -> float:
    """Validation error by separate least squares."""
    b = np.linalg.lstsq(columns[:n], y[:n], rcond=None)[0]
    return float(np.sum((y[n:] - columns[n:] @ b) ** 2) / np.sum((y[n:] - y[n:].mean()) ** 2))


def pool() -> tuple[Parts, Additive]:
    parts = Parts.of(Problem(Rows(SAMPLE, Y)), np.random.default_rng(1))
    return parts, parts.additive([parse(t) for t in ("x0*x1", "sin(x2)", "x0", "cos(x1)", "log(x0 - 1)", "x0 - x0")])


def test_influence_is_what_separate_fits_say() -> None:
    parts, found = pool()
    assert [str(term) for term in found.terms] == ["x0*x1", "sin(x2)", "x0", "cos(x1)"]  # finite and not constant
    columns = np.column_stack([np.ones(len(parts.y)), *(evaluate(term, parts.sample) for term in found.terms)])
    whole = errors(columns, parts.y, parts.n_training)
    error, influence = found.influence(range(4))
    np.testing.assert_allclose(error, whole, rtol=1e-9)
    without = [errors(np.delete(columns, j + 1, axis=1), parts.y, parts.n_training) - whole for j in range(4)]
    np.testing.assert_allclose(influence, without, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(found.error([0, 2]), errors(columns[:, [0, 1, 3]], parts.y, parts.n_training), rtol=1e-9)


def test_a_pole_is_not_a_term_and_an_outlier_of_an_input_is_one() -> None:
    x = np.linspace(-1.0, 1.0, 100) + 1e-4
    sample = Sample(np.stack([x, np.where(np.arange(100) == 50, 1000.0, x)]), ("x0", "x1"))
    parts = Parts.of(Problem(Rows(sample, x**2)), np.random.default_rng(0))
    terms = [parse("1/(x0 - 0.0103)"), parse("x0"), parse("x1")]
    assert [str(term) for term in parts.additive(terms).terms] == ["x0", "x1"]
    assert {str(term) for term in parts.ranked([], [[term] for term in terms])} == {"x0", "x1"}


def test_terms_that_do_not_matter_are_dropped() -> None:
    _, found = pool()
    kept = found.screened(range(4), min_influence=0.05, max_terms=8, max_nodes=60)
    assert [str(found.terms[k]) for k in kept] == ["x0*x1", "sin(x2)"]
    assert found.screened(range(4), min_influence=0.0, max_terms=1, max_nodes=60) == [0]


def test_terms_join_by_what_they_explain() -> None:
    _, found = pool()
    assert found.extended([], 2) == [0, 1]
    assert found.extended([3], 2) == [3, 0]


def test_of_several_starts_the_one_that_explains_most_stands_for_the_form() -> None:
    parts, _ = pool()
    starts = [parse(f"sin({c}*x2)") for c in (7.0, 2.0, 0.3)]
    assert str(parts.ranked([parse("x0*x1")], [[parse("x0")], starts])[0]) == "sin(2*x2)"


# --- the tree


def test_selection_spreads_and_scores_are_handed_up() -> None:
    root = Node()
    first = select(root, exploration=0.1, widening=1.0)
    assert first is root
    child = root.child((parse("x0"),))
    assert root.child((parse("x0"),)) is child
    child.backpropagate(0.7)
    assert (root.best, child.best, root.total) == (0.7, 0.7, 0.7)
    visited = [select(root, exploration=0.1, widening=1.0) for _ in range(20)]
    assert root in visited and child in visited


# --- the search


def test_terms_that_are_offered_are_found_fitted_and_kept() -> None:
    model = fitted(Scripted(("x0*x1\nsin(3*x2)\ncos(x0)\nx1",)), limits=Limits(calls=3))
    assert model.score(X, Y) > 1.0 - 1e-12
    assert {"calls made", "terms offered", "parsed", "kept"} <= set(model.counts_)
    assert model.counts_["calls made"] == 3 and model.counts_["terms offered"] == 12
    assert "limit of 3 calls" in model.counts_["stopped asking"]


def test_the_prompt_says_what_the_problem_is_and_what_was_found() -> None:
    proposer = Scripted(("x0*x1\nx1", "sin(2*x2)", "x0"))
    fitted(proposer, limits=Limits(calls=3))
    first, second = proposer.asked[0].prompt, proposer.asked[1].prompt
    assert "- x0: 0.5" in first and "The model has no terms yet." in first and "Write 4 new terms" in first
    assert "Allowed: + - * /" in first
    later = "\n".join(q.prompt for q in proposer.asked[1:])
    assert "Best models so far:" in second and "x0*x1" in later


def test_the_default_proposer_finds_a_law() -> None:
    y = 3.0 * X[:, 0] / X[:, 1]
    assert regressor("igsr", n=600).fit(X, y).score(X, y) > 1.0 - 1e-9


def test_calls_at_once_are_taken_in_the_order_of_the_questions() -> None:
    texts = tuple(f"x0*x1**{k}" for k in range(1, 9))
    first = fitted(replace(Scripted(texts), concurrency=4), limits=Limits(calls=8))
    second = fitted(replace(Scripted(texts), concurrency=4, asked=[]), limits=Limits(calls=8))
    assert first.counts_["calls made"] == 8
    assert first.counts_["terms offered"] == second.counts_["terms offered"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": "hidden"}, "'names' must be 'given' or 'anonymous'. Got 'hidden'."),
        ({"n_terms": 0}, "'n_terms' must be a whole number of at least 1, or None. Got 0."),
        ({"n_starts": 0}, "'n_starts' must be a whole number of at least 1. Got 0."),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        fitted(None, **options)


# --- limits


def test_tokens_are_a_hard_limit_that_counts_prompts() -> None:
    proposer = Scripted(("x0*x1",))
    model = fitted(proposer, limits=Limits(tokens=2000))
    assert 1 <= model.counts_["calls made"] < 20
    assert model.counts_["tokens"] <= 2000 and "limit of 2000 tokens" in model.counts_["stopped asking"]


def test_money_is_a_hard_limit() -> None:
    model = fitted(Scripted(("x0*x1",)), limits=Limits(cost=0.01, prices=(10.0, 30.0)))
    assert 0.0 < model.counts_["cost"] <= 0.01 and "in money" in model.counts_["stopped asking"]


def test_tokens_that_the_endpoint_counts_replace_the_estimate() -> None:
    ledger = Ledger(Limits(tokens=10_000))
    question = Question("s" * 100, "p" * 900, Vocabulary(("x0",), ("add",), ((0.0, 1.0),)), (), 4, 0, "1")
    ledger.enter(question, Answer("x0", prompt_tokens=250, answer_tokens=2), Reading())
    assert ledger.counts()["tokens"] == 252 and ledger.density == pytest.approx(0.275)
    ledger.enter(question, Answer("x0" * 4), Reading())
    assert ledger.counts()["tokens"] == 252 + 250 + 2


def test_limits_are_checked() -> None:
    with pytest.raises(ParameterError, match="'calls' must be a whole number of at least 1, or None. Got 0."):
        Limits(calls=0)
    with pytest.raises(ParameterError, match="'cost' needs 'prices'"):
        Limits(cost=1.0)


# --- feedback

OVERLAPPING = "x0\nsin(x0)\nx0**2\nx1"


def prompts(
    *, novelty: bool, influence: bool, texts: tuple[str, ...] = (OVERLAPPING, "x2"), **options: object
) -> list[str]:
    proposer = Scripted(texts)
    y = np.exp(X[:, 0]) + X[:, 1] + 0.05 * np.random.default_rng(3).normal(size=len(X))
    fitted(proposer, novelty=novelty, influence=influence, limits=Limits(calls=4), y=y, min_influence=0.0, **options)
    return [question.prompt for question in proposer.asked]


def test_the_kinds_of_feedback_have_one_name_each() -> None:
    kinds = [IGSR(guidance=g, influence=i).feedback_kind for i in (False, True) for g in (None, SobolevGuidance())]
    assert kinds == ["none", "novelty", "influence", "novelty+influence"] == list(FEEDBACK)


def test_novelty_appends_its_words_and_changes_nothing_else() -> None:
    plain, guided = prompts(novelty=False, influence=False), prompts(novelty=True, influence=False)
    assert plain[0] == guided[0]  # the empty parent: byte for byte the same
    changed = [(a, b) for a, b in zip(plain, guided, strict=True) if a != b]
    assert changed
    for before, after in changed[:1]:
        head, _, tail = after.partition("These terms repeat what the other terms already express")
        words = "These terms repeat what the other terms already express" + tail.split("\n\n")[0]
        assert after.replace(words + "\n\n", "") == before
        assert head and 1 <= words.count("novelty") <= 5


def test_where_nothing_is_low_the_prompt_is_that_of_the_plain_engine() -> None:
    texts = ("x0*x1\nsin(4*x2)", "x0*x1", "x0*x1")
    assert prompts(novelty=True, influence=False, texts=texts) == prompts(novelty=False, influence=False, texts=texts)


def test_the_words_are_those_of_the_plug_in_verb() -> None:
    parts = Parts.of(Problem(Rows(SAMPLE, Y)), np.random.default_rng(0))
    terms = (parse("x0"), parse("exp(0.3*x0)"))
    parent = Parent(terms, parse("x0 + exp(0.3*x0) + 1"), SAMPLE, parts.additive(terms), SobolevGuidance())
    assert FEEDBACK["novelty"](parent) == feedback(parse("x0 + exp(0.3*x0) + 1"), SAMPLE) != ""
    assert FEEDBACK["none"](parent) == ""
    both = FEEDBACK["novelty+influence"](parent)
    assert both.startswith(FEEDBACK["novelty"](parent)) and both.endswith(FEEDBACK["influence"](parent))


def test_the_constant_is_never_told_to_repeat_the_others() -> None:
    for intercept in ("free", "term"):
        engine_prompts = prompts(novelty=True, influence=False, intercept=intercept)
        words = "\n".join(text.partition("These terms repeat")[2] for text in engine_prompts)
        assert "(novelty" in words and "- 1 (novelty" not in words
    with pytest.raises(ParameterError, match="'intercept' must be 'term' or 'free'. Got 'none'."):
        prompts(novelty=True, influence=False, intercept="none")


def test_of_the_prompts_with_feedback_in_runs_of_the_grammar_sampler_none_names_the_constant() -> None:
    told = []
    for k, (low, intercept) in enumerate(product((0.5, 3.0), ("free", "term"))):
        rows = np.random.default_rng(k).uniform(low, low + 1.0, (120, 2))  # a narrow range: the constant is rebuilt
        asked: list[Question] = []
        engine = IGSR(Recording(asked), intercept=intercept, limits=Limits(calls=25), names="anonymous")
        budget = Budget(max_evaluations=2000, stop_when_exact=False)
        y = np.sqrt(rows[:, 0]) * rows[:, 1] + 5.0 + 0.05 * np.random.default_rng(9).normal(size=len(rows))
        SymbolicRegressor(engine, novelty=True, budget=budget, random_state=k).fit(rows, y)
        told += [text for q in asked if (text := q.prompt.partition("These terms repeat")[2])]
    assert len(told) >= 20
    assert [text for text in told if re.search(r"- [0-9.e+-]+ \(novelty", text)] == []


def test_an_empty_parent_gets_no_feedback() -> None:
    empty = Parent((), None, SAMPLE, None, SobolevGuidance())
    assert [function(empty) for function in FEEDBACK.values()] == ["", "", "", ""]


def test_influence_names_what_hardly_matters_and_pairs_that_stand_in_for_each_other() -> None:
    parts = Parts.of(Problem(Rows(SAMPLE, np.exp(X[:, 0]) + X[:, 1])), np.random.default_rng(0))
    terms = tuple(parse(t) for t in ("x0**3", "exp(0.8*x0)", "x1", "cos(x2)"))
    words = FEEDBACK["influence"](Parent(terms, None, SAMPLE, parts.additive(terms), SobolevGuidance()))
    little, rest = words.split("In these pairs either term can stand in for the other")
    pairs, most = rest.split("These terms matter most:")
    assert "cos(x2)" in little and "- x0**3 and exp(0.8*x0)" in pairs and "- x1" in most


def test_diagnoses_are_counted_only_with_guidance() -> None:
    assert fitted(Scripted((OVERLAPPING,)), novelty=False, limits=Limits(calls=3)).n_novelty_calls_ == 0
    assert fitted(Scripted((OVERLAPPING,)), novelty=True, limits=Limits(calls=3)).n_novelty_calls_ >= 1


# --- what leaves the machine


def table() -> tuple[pd.DataFrame, pd.Series]:
    frame = pd.DataFrame(X, columns=["reactor temperature", "flow", "secret_alloy"])
    return frame, pd.Series(Y, name="yield")


def sent(**options: Any) -> str:
    frame, y = table()
    with chat_server(saying("flow\nx1")) as server:
        engine = IGSR(ChatProposer(server.url, "m"), limits=Limits(calls=3), **options)
        regressor(engine, n=100).fit(frame, y)
        return json.dumps([request["body"] for request in server.received], ensure_ascii=False)


def test_names_ranges_and_means_leave_the_machine_and_no_row_does() -> None:
    text = sent()
    assert "reactor temperature" in text and "secret_alloy" in text and "yield" in text
    values = [f"{value:.6f}"[:6] for value in np.concatenate([X.ravel(), Y])]
    extremes = {f"{v:.6f}"[:6] for column in (*X.T, Y) for v in (column.min(), column.max())}
    assert not [value for value in values if value in text and value not in extremes]
    assert "Some rows" not in text


def test_names_can_be_hidden() -> None:
    text = sent(names="anonymous", descriptions={"flow": "litres per hour"})
    assert not [word for word in ("reactor", "flow", "alloy", "yield", "litres") if word in text.split("]", 1)[0]]
    assert "- x1: " in text


def test_descriptions_and_rows_are_shown_where_the_user_gives_them() -> None:
    text = sent(descriptions={"flow": "litres per hour"}, n_rows_shown=2)
    assert "litres per hour" in text and "Some rows" in text


def test_units_far_from_one_are_shown_and_read_as_the_user_has_them() -> None:
    pressure = RNG.uniform(90_000.0, 110_000.0, 200)
    frame = pd.DataFrame({"p": pressure, "v": X[:, 0]})
    proposer = Scripted(("1/p\np*v",))
    engine = IGSR(proposer, limits=Limits(calls=2))
    y = 3.0 * pressure * X[:, 0]
    model = regressor(engine, n=60).fit(frame, y)
    assert "- p: 9" in proposer.asked[0].prompt and "e+0" in proposer.asked[0].prompt
    assert model.score(frame, y) > 1.0 - 1e-12


# --- transcripts


def recorded(path: Path, n: int = 150, proposer: Any = None, **options: Any) -> SymbolicRegressor:
    return regressor(IGSR(Transcript(path, proposer), limits=Limits(calls=6)), n=n).fit(X, Y, **options)


def test_the_same_transcript_gives_the_same_model_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with chat_server(saying("x0*x1\nsin(3*x2)\nx0")) as server:
        first = recorded(path, proposer=ChatProposer(server.url, "m"))
        n_asked = len(server.received)
    again = recorded(path)  # the server is gone
    first.save(tmp_path / "first.json")
    again.save(tmp_path / "again.json")
    contents = [json.loads((tmp_path / name).read_text()) for name in ("first.json", "again.json")]
    assert contents[0] == contents[1] and n_asked == 6
    pd.testing.assert_frame_equal(first.equations_, again.equations_)
    assert again.counts_["calls replayed"] == again.counts_["calls made"] == 6


def test_a_line_says_what_was_asked_and_what_came(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with chat_server(saying("x0*x1\nprose", prompt_tokens=100, completion_tokens=9)) as server:
        recorded(path, proposer=ChatProposer(server.url, "m", temperature=0.5))
    line = json.loads(path.read_text().splitlines()[0])
    assert (line["model"], line["temperature"], line["prompt_version"]) == ("m", 0.5, "1")
    assert (line["prompt_tokens"], line["answer_tokens"]) == (100, 9)
    assert (line["finish_reason"], line["n_retries"], line["problem"]) == ("stop", 0, "")
    assert line["parsed"] == ["x0*x1"] and line["n_malformed"] == 1 and line["seconds"] >= 0.0
    assert len(line["hash"]) == 32 and line["seed"] >= 0


def test_a_killed_run_resumes_without_asking_again(tmp_path: Path) -> None:
    path, checkpoint = tmp_path / "calls.jsonl", tmp_path / "run.json"

    def dying(handler: Handler, request: dict[str, Any]) -> None:
        if len(server.received) > 3:
            raise ConnectionAbortedError  # the machine goes down
        handler.say("x0*x1\nsin(3*x2)\nx0")

    with chat_server(dying) as server:
        proposer = ChatProposer(server.url, "m", max_retries=0)
        recorded(path, n=20, proposer=proposer, checkpoint=checkpoint)
        answered = {json.loads(line)["hash"] for line in path.read_text().splitlines() if json.loads(line)["text"]}
        assert len(answered) == 3
    path.write_text(path.read_text() + '{"format": "sobolev-nov')  # killed while it wrote
    with chat_server(saying("x0*x1\nsin(3*x2)\nx0")) as server:
        second = recorded(path, n=200, proposer=ChatProposer(server.url, "m"), checkpoint=checkpoint)
        assert len(server.received) == second.counts_["calls made"] - second.counts_["calls replayed"]
    assert second.counts_["calls replayed"] == 3 and second.score(X, Y) > 1.0 - 1e-9
    assert fitted(Transcript(path), limits=Limits(calls=1)).counts_["calls replayed"] == 1  # the cut line does no harm


def test_half_a_character_in_an_answer_is_recorded_and_replayed(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with chat_server(saying("x0*x1\nsin(3*x2) \ud800\n\udfffx0")) as server:
        first = recorded(path, proposer=ChatProposer(server.url, "m"))
        n_asked = len(server.received)
    again = recorded(path)
    assert again.counts_["calls replayed"] == n_asked == 6
    pd.testing.assert_frame_equal(first.equations_, again.equations_)
    assert first.score(X, Y) > 0.9


def test_a_full_disk_costs_the_transcript_and_not_the_search(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    with (
        chat_server(saying("x0*x1\nsin(3*x2)\nx0")) as server,
        pytest.warns(UserWarning, match=r"The transcript '/dev/full' could not be written \(No space left on device\)"),
    ):
        model = recorded(Path("/dev/full"), proposer=ChatProposer(server.url, "m"))
    assert model.score(X, Y) > 1.0 - 1e-9
    with (
        chat_server(saying("x0*x1")) as server,
        pytest.warns(UserWarning, match="could not be written"),
    ):
        recorded(tmp_path / "no such folder" / "calls.jsonl", proposer=ChatProposer(server.url, "m"))


def test_a_question_that_was_never_asked_is_not_answered_by_a_replay(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with chat_server(saying("x0*x1")) as server:
        recorded(path, proposer=ChatProposer(server.url, "m"))
    other = SymbolicRegressor(IGSR(Transcript(path)), budget=Budget(max_evaluations=50), random_state=1).fit(X, Y)
    assert "has no answer to this question" in other.counts_["last problem"]


def test_a_file_that_is_not_a_transcript_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text('{"format": "else"}\n\n')
    with pytest.raises(DataError, match="Line 1 of the transcript .* is not a recorded call"):
        recorded(path)
    with pytest.raises(DataError, match="holds no calls. Record one: give a proposer"):
        recorded(tmp_path / "missing.jsonl")


# --- for the other engines


def test_a_language_model_seeds_the_genetic_engine(tmp_path: Path) -> None:
    frame, y = table()
    with chat_server(saying("`reactor temperature`*flow\nsin(2*secret_alloy)\ncos(nothing)")) as server:
        model = regressor(guesses=ChatProposer(server.url, "m"), n=4).fit(frame, y)
        assert len(server.received) == 3
    assert model.counts_ == {"guesses given": 3} and model.score(frame, y) > 1.0 - 1e-12
    model.save(tmp_path / "model.json")
    assert SymbolicRegressor.load(tmp_path / "model.json").guesses is None


def test_a_checkpoint_has_the_guesses_already(tmp_path: Path) -> None:
    with chat_server(saying("x0*x1")) as server:
        for n in (3, 40):
            regressor(guesses=ChatProposer(server.url, "m"), n=n).fit(X, Y, checkpoint=tmp_path / "run.json")
        assert len(server.received) == 3


def test_a_source_that_cannot_be_reached_leaves_the_search_as_it_is() -> None:
    with chat_server(saying("x0*x1")) as server:
        url = server.url
    source = ChatProposer(url, "m", max_retries=0)
    model = regressor("mcts", guesses=source, n=60).fit(X, Y)
    assert model.counts_ == {"guesses given": 0} and np.isfinite(model.predict(X)).all()


def test_a_saved_model_predicts_and_says_what_it_lacks(tmp_path: Path) -> None:
    model = fitted(Scripted(("x0*x1",)), limits=Limits(calls=1))
    model.save(tmp_path / "model.json")
    loaded = SymbolicRegressor.load(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    with pytest.raises(ParameterError, match="JSON could not hold its option\\(s\\) limits, proposer"):
        loaded.fit(X, Y)


def test_the_public_names_are_there() -> None:
    assert (sn.IGSR, sn.ChatProposer, sn.Transcript, sn.Limits, sn.GrammarSampler) == (
        IGSR, ChatProposer, Transcript, Limits, GrammarSampler,
    )  # fmt: skip
