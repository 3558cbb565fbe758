"""What novelty is: signatures of terms, and the verbs that use them."""
