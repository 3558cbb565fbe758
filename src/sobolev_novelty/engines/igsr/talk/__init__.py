"""Talking with a language model: what is sent, what comes back, and the record of both."""
