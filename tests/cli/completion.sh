#!/usr/bin/env bash
# The completion offers verbs, flags and choices.
edgewise help --format bash >completion.bash
# shellcheck disable=SC1091
. ./completion.bash
complete_line() {
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    COMPREPLY=()
    _edgewise
    echo "${COMPREPLY[*]}"
}
complete_line edgewise vers
complete_line edgewise version --j
complete_line edgewise help --format b
complete_line edgewise help vers
complete_line edgewise info squeezenet1
touch squeezenet1.onnx
complete_line edgewise info squeezenet1
complete_line edgewise info --sv
complete_line edgewise info --svg squeeze
complete_line edgewise help --fo
