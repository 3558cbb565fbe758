"""``sobolev app``: a page of one's own computer around the reports, the pruning and the search.

``workspace`` holds what one user is working on, ``fit_process`` runs a search beside it, ``routes`` and ``downloads``
say what each address answers, ``gate`` who may ask, and ``server`` brings them to a browser.
Nothing leaves the machine.
"""
