"""What novelty is: signatures of terms, and the verbs that use them (Section 3 of the paper)."""
