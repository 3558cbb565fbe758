"""Which equation of a search is reported: the one with the lowest price (:mod:`sobolev_novelty.price`).

``rows``            the rows that decide, in an order of their own
``weighted``        equations fitted under a kind of noise, and which kind the rows speak for
``simple_numbers``  numbers as simple as the rows allow
``shorter``         what leading equations look like with an operator less
``plain``           the constant, and the straight line in selected columns
``criteria``        what is found against an equation that no row shows
``held_out``        errors on rows held out, for the rules that ask for them
``choice``          all of it: the order, the reason and the rules
``rivals``          different functions that come close
"""
