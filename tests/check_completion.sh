#!/usr/bin/env bash
# Completion in real shells: zsh and fish load their file and complete words (bash: tests/cli).
# usage: check_completion.sh SOURCE_DIR BUILD_DIR
# shellcheck disable=SC2016,SC2317 # scripts of other shells; functions called by a name that is put together
set -euo pipefail
gen=$(cd "$2" && pwd)/gen
[ -f "$gen/edgewise.fish" ] || { echo "skip completion: none was made"; exit 77; }
PATH=$(cd "$2" && pwd)/src:$PATH
export PATH
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
status=0

# expect SHELL WORDS FOUND WANTED...: every wanted word is among those found.
expect() {
    local shell=$1 words=$2 found=$3 w
    shift 3
    for w in "$@"; do
        if ! grep -qxF -- "$w" <<<"$found"; then
            echo "'$words' has no $w: $(tr '\n' ' ' <<<"$found")"
            echo "FAIL $shell"
            status=1
            return
        fi
    done
    echo "ok $shell: $words"
}

# zsh without a terminal has no completion system: the calls are replaced by functions that print.
in_zsh() {
    zsh -f -c '
        compdef() { :; }; _files() { :; }
        compadd() { [[ $1 == -a ]] && print -l -- ${(P)2}; }
        source "$1"; words=(${=2}); [[ $2 == *" " ]] && words+=(""); CURRENT=$#words; _edgewise' zsh "$gen/_edgewise" "$1"
}

in_fish() {
    fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$gen/edgewise.fish" "$1" | cut -f 1
}

for shell in zsh fish; do
    if ! command -v $shell >/dev/null; then echo "skip $shell: there is none"; continue; fi
    expect $shell 'edgewise ben' "$("in_$shell" 'edgewise ben')" bench
    expect $shell 'edgewise bench squ' "$("in_$shell" 'edgewise bench squ')" squeezenet1_0 squeezenet1_1
    expect $shell 'edgewise bench --prof' "$("in_$shell" 'edgewise bench --prof')" --profile
    expect $shell 'edgewise study train-w' "$("in_$shell" 'edgewise study train-w')" train-workers
done
exit $status
