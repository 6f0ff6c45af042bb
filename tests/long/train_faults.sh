#!/bin/bash
# Plants each fault of a training rank 40 times instead of the few of the ordinary suite.
# usage: train_faults.sh BUILD ROOT [TRIALS [SEED]]
ASSAY_TEST_LONG=yes exec "$2/tests/mpi/train_faults.sh" "$1/src/assay" "$1/src/team/libassay-mpi.so" "$1/tests/fake/mpi_plugin.so" "${3:-40}" "${4:-17}"
