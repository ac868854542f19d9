# Names in files may contain terminal control sequences: no command prints them.
export EW_UNIT=test
esc=$(printf '\033')
cp "$CASES/../fixtures/finds/terminal-escapes.onnx" evil.onnx
mkdir -p "set/a${esc}[31mred" "set/b"$'\xff\x9b' "set/c"$'\xe2\x80\xae'
edgewise data make --kind digits --train 2 --test 1 --to made >/dev/null 2>&1
for d in set/*; do cp "$(find made -name '*.png' | head -n 1)" "$d/x.png"; done
cat >e.study <<STUDY
[study]
order = file
[a${esc}[2J]
command = bench
network = no${esc}]0;title
STUDY
edgewise study e.study --busy 1 >study.txt 2>&1 || true
all() {
    edgewise run evil.onnx --random
    edgewise info evil.onnx
    edgewise info evil.onnx --json
    edgewise bench evil.onnx --iters 1 --warmup 0 --profile
    edgewise data info set
    edgewise data info set --json
    edgewise results
    edgewise results --csv
    edgewise results --json
    edgewise info "no${esc}[31m.onnx"
    edgewise "nonsense${esc}[31m"
    cat study.txt
}
all >all.txt 2>&1 || true
LC_ALL=C grep -c '\\x1b' all.txt | sed 's/^[1-9].*/escaped/'
LC_ALL=C tr -d '\n\t\040-\176\200-\377' <all.txt | od -An -c | head -n 3
iconv -f UTF-8 -t UTF-8 all.txt >/dev/null && echo "valid UTF-8"
edgewise data info set | grep ^classes
edgewise data info set --json | grep -A 4 '"classes"' | grep -c u001b
edgewise info "no${esc}[31m.onnx" 2>&1 || true
