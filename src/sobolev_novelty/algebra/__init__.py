"""Rewriting expressions: the one place that knows products, sums, powers and simple numbers.

``products``          products of powers, and the arithmetic of their exponents and numeric factors
``writing``           products, powers and weighted sums as expressions, in few nodes and in allowed operators
``sums``              an expression as a sum of products, distributed: what additive terms are
``canonical``         an expression with signs and numeric factors in their canonical places, nothing distributed
``factoring``         common factors taken out of sums
``proper_fractions``  quotients of sums divided out
``outer``             outer functions, and how they are undone
``numbers``           simple numbers near a fitted constant

All of it works on expressions alone: no data, no kernels.
"""
