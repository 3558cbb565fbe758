"""IGSR: a proposer offers terms, influence keeps them, novelty tells the proposer what is already said (Appendix D.3).

::

    protocol.py     Question, Answer, Proposer: what passes between the engine and whoever offers terms
    chat.py         any OpenAI-compatible endpoint, over the standard library's HTTP
    transcript.py   one JSON line per call; replays
    sampler.py      the embedded default: terms drawn from the grammar, no model
    grammar.py      the grammar of admissible terms, as GBNF and as a JSON schema
    prompts.py      the words of a question, with their version
    answers.py      the words of an answer -> terms, by our parser alone
    feedback.py     none, novelty, influence, novelty+influence: what is appended to the words
    additive.py     least squares on the training part, error and influence on the validation part
    ledger.py       calls, tokens, money: counted and limited
    engine.py       the tree search over sets of terms
"""
