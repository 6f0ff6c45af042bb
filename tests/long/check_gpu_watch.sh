#!/bin/sh
# tests/end2end/check_gpu_watch.sh with the screens by tmux and the first frame. usage: check_gpu_watch.sh ASSAY NVML-FAKE ROOT
CHECK_SCREENS=yes exec sh "$3/tests/end2end/check_gpu_watch.sh" "$@"
