#!/usr/bin/env bash
# Layers: a folder under src/ includes only strictly lower layers, as "module/file.h"; siblings never.
# A library of others is included in one folder only.
# usage: check_layers.sh SOURCE_DIR
set -euo pipefail
cd "$1/src"

declare -A layer=([base]=0 [graph]=1 [record]=1 [op]=2 [data]=2 [device]=2 [store]=2 [model]=3 [format]=3
    [compress]=3 [backend]=3 [plan]=4 [train]=5 [bench]=5 [engine]=5 [quant]=6 [scale]=6 [prune]=6 [network]=6 [study]=6 [advise]=6 [federate]=7 [report]=7 [measure]=7 [api]=8 [cli]=8)
declare -A library=([protobuf-c/protobuf-c.h]=format [png.h]=data [turbojpeg.h]=data [zlib.h]=data
    [mpi.h]=train [cuda_runtime.h]=backend [cudnn.h]=backend [cublasLt.h]=backend
    [sqlite3.h]=store [microhttpd.h]=report [curl/curl.h]=data
    [libavformat/avformat.h]=data [libavcodec/avcodec.h]=data [libswscale/swscale.h]=data)

bad=0
complain() { echo "src/$1:$2: $3"; bad=$((bad + 1)); }

while IFS=: read -r file line text; do
    module=${file%%/*}
    own=${layer[$module]:-}
    [ -n "$own" ] || { complain "$file" "$line" "folder $module has no layer in tests/check_layers.sh"; continue; }
    if [[ $text =~ \<([^\>]+)\> ]]; then
        home=${library[${BASH_REMATCH[1]}]:-$module}
        [ "$home" = "$module" ] || complain "$file" "$line" "${BASH_REMATCH[1]} belongs to $home"
        continue
    fi
    [[ $text =~ \"([^\"]+)\" ]] || continue
    other=${BASH_REMATCH[1]%%/*}
    [ "$other" != "${BASH_REMATCH[1]}" ] || continue # edgewise.h and what the build makes
    if [ -z "${layer[$other]:-}" ]; then
        complain "$file" "$line" "${BASH_REMATCH[1]}: there is no module $other"
    elif [ "$other" != "$module" ] && [ "${layer[$other]}" -ge "$own" ]; then
        complain "$file" "$line" "$module (layer $own) includes $other (layer ${layer[$other]})"
    fi
done < <(grep -rn --include='*.[ch]' '^ *# *include' . | sed 's|^\./||')

# What protoc-c makes is there for format alone: another module might be compiled before it.
hidden=(format/onnx_file.h)
while mapfile -t more < <(grep -lE "include \"($(IFS='|' && echo "${hidden[*]}"))\"" format/*.h |
    grep -vxFf <(printf '%s\n' "${hidden[@]}")) && [ ${#more[@]} -gt 0 ]; do
    hidden+=("${more[@]}")
done
while IFS=: read -r file line text; do
    complain "$file" "$line" "$text needs protobuf-c's messages, which format has"
done < <(grep -rnE --include='*.[ch]' "include \"($(IFS='|' && echo "${hidden[*]}"))\"" . | sed 's|^\./||' | grep -v '^format/' || true)

# Limits choose among plans, by what anybody may see of them.
while IFS=: read -r file line _; do
    complain "$file" "$line" "plan/limit knows plans by plan/plan.h and plan/strategy.h alone"
done < <(grep -n 'plan/plan_impl.h' plan/limit/*.[ch] || true)

if [ "$bad" -gt 0 ]; then echo "FAIL layers: $bad"; exit 1; fi
echo "ok layers"
