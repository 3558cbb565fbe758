"""Which equation of a search is reported: the one with the lowest price (:mod:`sobolev_novelty.price`).

``refits``          equations fitted anew: under a kind of noise, shorter, the constant and lines
``simple_numbers``  numbers as simple as the rows allow
``criteria``        what is found against an equation that no row shows
``chooser``         all of it, and the kind of noise that the rows speak for
``choice``          what comes of it: equations in the order of their price
"""
