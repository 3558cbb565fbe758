"""Fuzzers: valid files, texts and command lines, changed at random; every error must be one of ours, in two seconds."""
