"""A small transformer that reads a table and writes formulas: its corpus, training and weights.

The only part of the package that imports torch. The corpus (``corpus/``, ``tokenizer``, ``decontaminate``) does
without, so that anyone can filter one.
"""
