#!/bin/bash
# Strikes teams of three ranks a thousand times instead of the 50 of the ordinary suite.
# usage: team_kills.sh ASSAY ROOT [TRIALS]
exec "$2/tests/end2end/team_kill.sh" "$1" "${3:-1000}"
