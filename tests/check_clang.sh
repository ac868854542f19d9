#!/usr/bin/env bash
# Clang's warnings for recently changed files; no other test compiles with clang.  One process parses all files, 15 ms
# each; code without a test of its own here (kernels, modules), and the effect of headers on other files, are left to
# `./run tidy`.
# usage: check_clang.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
build=$(cd "$2" && pwd)
cd "$1"
commits=100
for tool in clang git; do
    command -v $tool >/dev/null || { echo "skip clang: no $tool"; exit 77; }
done
git rev-parse --git-dir >/dev/null 2>&1 || { echo "skip clang: no checkout"; exit 77; }

# Without a git history all files count as changed.
if git rev-parse --verify --quiet "HEAD~$commits" >/dev/null; then
    changed() { git diff --name-only --diff-filter=d "HEAD~$commits" -- src tests; }
else
    changed() { git ls-files -- src tests; }
fi
mapfile -t files < <({ changed && git ls-files --others --exclude-standard -- src tests; } | sort -u |
    grep '\.c$' | grep -vE '^src/(backend/cpu/kernel|backend/cuda/module|train/mpi)/' || true)
[ ${#files[@]} -gt 0 ] || { echo "ok clang"; exit 0; }

# Definitions, include folders and warnings of all files together: they differ only in those that some files ignore.
words=$(grep '"command":' "$build/compile_commands.json" | grep -v '/cpu/kernel/' |
    grep -oE -- ' -(isystem [^ ]*|[DIW][^ ]*)' | sort -u | grep -vE -- '-D(main|LLVMFuzzer[A-Za-z]*)=|_EXPORTS' |
    sed -e 's/\\\([\\"]\)/\1/g' | tr -d '\n')
eval "flags=($words)"
flags+=(-std=c11 -fsyntax-only -Werror -Wno-double-promotion -Wno-missing-prototypes)
# `clang -cc1` accepts many files; `clang` would start a process for each.
cc1=$(clang -### "${flags[@]}" src/base/err.c 2>&1 | grep -- '"-cc1"')
command=()
eval "command+=(${cc1% *})"
if ! "${command[@]}" "${files[@]}" >/dev/null 2>"$build/clang.log"; then
    grep -E ': (error|fatal error):' "$build/clang.log" | head -n 20
    echo "FAIL clang"
    exit 1
fi
echo "ok clang"
