r"""What an equation costs: the only place with a price, all of it in nats.

.. math:: \underbrace{-\ln p(\mathrm{form})}_{\text{structure}} + \underbrace{\tfrac12 k \ln n}_{\text{numbers}}
          \; \underbrace{- \ln L}_{\text{rows}} + \text{findings}

``structure``    what a form costs among all forms of these operators and inputs
``numbers``      what a number costs that the rows support, and what a simple one does
``likelihood``   how well the rows are met, the level of the noise integrated out
``noise``        how the noise goes with the value
``description``  all of it together

Of two equations the one with the lower price is the better account of the rows: by e times as probable for each nat.
Equations, their values and rows come in; only errors of inputs ask for slopes.
"""
