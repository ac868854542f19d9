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
complete_line edgewise study train-w
complete_line edgewise data ge
complete_line edgewise data get cifar10
complete_line edgewise train lenet5 --data mni
complete_line edgewise boards orin-n
complete_line edgewise bench --iters 5 --threads 1 resnet15
complete_line edgewise power re
complete_line edgewise run --device cp
# zsh and fish get the same words from the program.
edgewise help --format complete -- train lenet5 --optimizer n
edgewise help --format zsh | head -n 1
edgewise help --format fish | grep -c 'help --format complete'
if command -v zsh >/dev/null; then edgewise help --format zsh >_edgewise && zsh -n _edgewise; fi
if command -v fish >/dev/null; then edgewise help --format fish | fish --no-execute; fi
