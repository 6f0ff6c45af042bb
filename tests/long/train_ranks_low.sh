#!/bin/bash
# Training in low precision on fake GPU ranks in every stage instead of the few of the ordinary suite.
# usage: train_ranks_low.sh BUILD ROOT
exec "$2/tests/end2end/train_ranks_low.sh" "$1/src/assay" "$1/tests/fake" "$2" every
