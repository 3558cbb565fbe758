"""From and to the words of others: text, SymPy, code, and the models of other packages."""
