"""Networks trained on filtered corpora, and what they are worth."""
