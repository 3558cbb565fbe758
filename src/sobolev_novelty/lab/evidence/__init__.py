"""Stored evidence: files of results whose rows say what was run, what came out, and which sources made it."""
