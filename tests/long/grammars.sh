#!/bin/bash
# Thousands of random JSON schemas as grammars beside PyPI's jsonschema, and the time of masks with Qwen's vocabulary.
# usage: grammars.sh WALKER ROOT
exec "$2/tests/end2end/grammar_peers.sh" "$1" "$2" long
