#!/usr/bin/env bash
# Every option given to a command in the pages and examples exists.
# usage: check_commands.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
edgewise=$(cd "$2" && pwd)/src/edgewise
cd "$1"
declare -A known
for command in $("$edgewise" help --format complete -- ''); do
    known[$command]=" $("$edgewise" help "$command" | grep -oE -e '--(\[no-\])?[a-z0-9-]+' | sed 's/\[no-\]//' | tr '\n' ' ')"
done
status=0 count=0
while IFS=: read -r file line text; do
    text=${text% -- *} # what follows is another program's
    command=${text#* }
    command=${command%% *}
    [ -n "${known[$command]:-}" ] || continue
    count=$((count + 1))
    for option in $(grep -oE -e ' --[a-z][a-z0-9-]*' <<<"$text" || true); do
        [[ ${known[$command]} != *" $option "* && ${known[$command]} != *" --${option#--no-} "* ]] || continue
        echo "FAIL $file:$line: $command has no option $option"
        status=1
    done
done < <(grep -noE '(edgewise|\./run) [a-z]+ [^|`;&#]*' ./*.md docs/*.md bench/*/README.md examples/*)
[ $count -ge 200 ] || { echo "FAIL only $count commands were found in the pages"; exit 1; }
[ $status -ne 0 ] || echo "ok options of $count commands in the pages"
exit $status
