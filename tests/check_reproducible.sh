#!/usr/bin/env bash
# Two release builds in two folders give the same bytes and have their protections; the SBOM (SPDX) names every library
# that the program links.
# usage: check_reproducible.sh SOURCE_DIR BUILD_DIR
# Only a part is built here: the engine and the generated files.  Sources of differences are the same for every file:
# flags, paths in messages, orders of lists.
# EW_REPRODUCE=all builds everything (minutes); EW_REPRODUCE=static the tarball of ./run static, for this machine.
set -euo pipefail
source=$1 dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
status=0
unset CMAKE_C_COMPILER_LAUNCHER

verdict() {
    if [ -n "$2" ]; then
        printf '%s\n' "$2" | head -n 20
        echo "FAIL $1"
        status=1
    else
        echo "ok $1"
    fi
}

if ! git -C "$source" rev-parse 2>/dev/null; then echo "skip reproducible: not a git checkout"; exit 77; fi

copy() { # PLACE
    mkdir -p "$dir/$1"
    (cd "$source" && git ls-files -z | tar --null -T - --ignore-failed-read -cf - 2>/dev/null) | tar -C "$dir/$1" -xf -
}

if [ "${EW_REPRODUCE:-}" = static ]; then
    for place in one two/deeper; do
        copy $place
        if [ -d "$source/build/charts" ]; then mkdir -p "$dir/$place/build" && cp -r "$source/build/charts" "$dir/$place/build"; fi
        # Without ccache, which would give the first build's objects to the second.
        if ! CCACHE_DISABLE=1 SOURCE_DATE_EPOCH=1 "$dir/$place/run" static native >"$dir/sums-${place%/*}" 2>"$dir/log"; then
            tail -n 20 "$dir/log"
            echo "FAIL static build"
            exit 1
        fi
    done
    verdict "two tarballs in two folders, same bytes" "$(diff "$dir/sums-one" "$dir/sums-two" || true)"
    exit $status
fi

targets=(ew_engine ew_protos)
[ "${EW_REPRODUCE:-}" = all ] && targets=(all)
for place in one two/deeper; do
    copy $place
    # Without ccache, which would give the first build's objects to the second.
    if ! { SOURCE_DATE_EPOCH=1 cmake -S "$dir/$place" -B "$dir/$place/build/release" -G Ninja \
        -DCMAKE_BUILD_TYPE=Release -DEW_TESTS=OFF -DEW_LAB=OFF -DEW_CCACHE= \
        -DEW_CHARTS_FOLDER="$source/build/charts" && ninja -C "$dir/$place/build/release" "${targets[@]}"; } \
        >"$dir/log" 2>&1; then
        tail -n 20 "$dir/log"
        echo "FAIL release build"
        exit 1
    fi
done

made() { (cd "$dir/$1/build/release" && find . \( -name '*.o' -o -path './gen/*' -o -name 'edgewise' -o -name '*.so.*' \) \
    -type f ! -name '*.cmake' -print0 | sort -z | xargs -0 sha256sum); }
made one >"$dir/sums-one"
made two/deeper >"$dir/sums-two"
verdict "two builds in two folders, same bytes ($(wc -l <"$dir/sums-one") files)" \
    "$(diff "$dir/sums-one" "$dir/sums-two" || true)"

commands=$dir/one/build/release/compile_commands.json
lacking=$(for flag in -D_FORTIFY_SOURCE=3 -fstack-protector-strong; do
    grep -h '"command"' "$commands" | grep -v -- "$flag" | grep -oE '[^ ]*\.c"' | sed "s/$/ without $flag/" || true
done)
linked=$(grep -A 20 '^build src/edgewise: ' "$dir/one/build/release/build.ninja" | grep -m 1 LINK_FLAGS || true)
for flag in relro now noexecstack; do
    [[ $linked == *-Wl,-z,$flag* ]] || lacking+=$'\n'"src/edgewise is linked without -z $flag"
done
verdict "release builds are hardened" "$lacking"

sbom=$2/gen/edgewise.spdx.json
needed=$(readelf -d "$2/src/edgewise" | sed -n 's/.*NEEDED.*\[lib\([^.]*\)\.so.*/\1/p' |
    grep -vE '^(m|c|asan|ubsan|tsan|gcc_s)$' | sed -e 's/^png16$/png/' -e 's/^z$/zlib/')
# Those that it opens at run time stand in definitions of their readers: EW_CURL_FILE="libcurl.so.4".
opened=$(grep -ohE '_FILE=[\"]*lib[a-z]+' "$2/compile_commands.json" | sed 's/.*lib//' | sort -u)
verdict "the list of parts names every library" "$(for lib in $needed $opened; do
    grep -qE "\"name\": \"(lib)?$lib\"" "$sbom" || echo "$lib is not in $sbom"
done)"
if command -v node >/dev/null; then
    # shellcheck disable=SC2016 # JavaScript
    verdict "the list of parts is SPDX: every relation joins two parts" "$(node -e '
        const doc = JSON.parse(require("fs").readFileSync(process.argv[1]));
        const ids = new Set([doc.SPDXID, ...doc.packages.map((p) => p.SPDXID)]);
        if (doc.spdxVersion !== "SPDX-2.3" || ids.size !== doc.packages.length + 1) console.log("two parts have one id");
        for (const id of ids) if (!/^SPDXRef-[A-Za-z0-9.-]+$/.test(id)) console.log(`${id} is no SPDX id`);
        for (const p of doc.packages) if (!p.name || !p.versionInfo || !p.downloadLocation) console.log(`${p.SPDXID} lacks a field`);
        for (const r of doc.relationships)
            if (!ids.has(r.spdxElementId) || !ids.has(r.relatedSpdxElement)) console.log(`${r.relatedSpdxElement} is no part`);
    ' "$sbom" 2>&1)"
fi
exit $status
