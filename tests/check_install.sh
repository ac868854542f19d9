#!/usr/bin/env bash
# The installed tree is sufficient to build other programs, with the static and the shared library.
# usage: check_install.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cmake --install "$2" --prefix "$dir/usr" >"$dir/log" 2>&1 || { cat "$dir/log"; echo "FAIL install"; exit 1; }
for f in include/edgewise.h lib/libedgewise.a lib/libedgewise.so lib/pkgconfig/edgewise.pc bin/edgewise \
    share/man/man1/edgewise.1 share/bash-completion/completions/edgewise dist-packages/edgewise/__init__.py; do
    # libraries may be one folder deeper, by architecture
    [ -n "$(find "$dir/usr" -path "*/${f#lib/}")" ] ||
        { echo "$f is not there"; echo "FAIL install"; exit 1; }
done
# Files that the Debian packages expect are installed, independent of the architecture's library folder.
for list in "$1"/debian/*.install; do
    [ "${list##*/}" != edgewise-cuda.install ] || continue
    while read -r pattern _; do
        [ -n "$(find "$dir/usr" -name "${pattern##*/}")" ] ||
            { echo "${list##*/}: $pattern is not there"; echo "FAIL install"; exit 1; }
    done <"$list"
done
echo "ok install"

if ! command -v pkg-config >/dev/null; then echo "skip pkg-config: there is none"; exit 0; fi
cat >"$dir/use.c" <<'END'
#include <edgewise.h>
#include <stdio.h>

int main(void)
{
    ew_graph_free(NULL);
    return puts(ew_version()) < 0;
}
END
pc=$(find "$dir/usr" -name edgewise.pc)
export PKG_CONFIG_PATH=${pc%/*}
libdir=$(pkg-config --variable=libdir edgewise)
version=$("$dir/usr/bin/edgewise" version | cut -d' ' -f2)
status=0
for kind in shared static; do
    read -ra flags < <(
        if [ $kind = shared ]; then
            pkg-config --cflags --libs edgewise
        else
            pkg-config --static --cflags --libs edgewise | sed 's/-ledgewise/-l:libedgewise.a/'
        fi
    )
    if ${CC:-cc} "$dir/use.c" -o "$dir/use-$kind" "${flags[@]}" &&
        [ "$(LD_LIBRARY_PATH=$libdir "$dir/use-$kind")" = "$version" ]; then
        echo "ok program with the $kind library"
    else
        echo "FAIL program with the $kind library"
        status=1
    fi
done

# The example, built as its first lines say, and its output for an image.
"$dir/usr/bin/edgewise" compile lenet5 --mean 0 --std 1 -o "$dir/lenet5.ewe" >/dev/null 2>&1
read -ra flags < <(pkg-config --cflags --libs edgewise)
if ${CC:-cc} "$1/examples/classify.c" "${flags[@]}" -lm -o "$dir/classify" &&
    LD_LIBRARY_PATH=$libdir "$dir/classify" "$dir/lenet5.ewe" "$1/tests/fuzz/corpus/image/grey.png" |
    grep -q 'class [0-9]'; then
    echo "ok example with the installed library"
else
    echo "FAIL example with the installed library"
    status=1
fi
exit $status
