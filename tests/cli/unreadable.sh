# What was not measured is absent, never zero: data sets none of whose images can be read.
export XDG_CACHE_HOME=$PWD
edgewise data make --kind digits --classes 10 --train 40 --test 10 --to digits >/dev/null 2>&1
for f in digits/test/*/*.png; do echo 'no image' >"$f"; done
edgewise eval lenet5-mnist --data digits --on-bad-sample skip 2>&1 | tail -n 1
edgewise eval lenet5-mnist --data digits --on-bad-sample skip --json --csv m.csv 2>/dev/null || echo "exit $?"
ls m.csv 2>/dev/null || true
edgewise train lenet5 --data digits --epochs 1 --batch 8 --on-bad-sample skip -o run --db run.db 2>/dev/null | head -n 1
grep '"test_' run/result.json
edgewise results --db run.db --json | grep '"test_' || echo "no score recorded"
edgewise data info digits --split test 2>/dev/null | grep -E '^(mean|deviation|from)'
edgewise data info digits --split test --json 2>/dev/null | grep -E '"(mean|deviation|measured_samples|bad_samples)"'
# Lack of descriptors is no sample's fault: whatever their number, a command reads all samples or fails with the reason.
edgewise data make --kind digits --train 12 --test 4 --to few >/dev/null 2>&1
: >log
for most in {4..24}; do
    for command in "data pack few --raw --to $most.ewpack" "eval lenet5-mnist --data few" "train lenet5 --data few --epochs 1 --batch 4 -o few.run"; do
        # shellcheck disable=SC2086
        for skip in "" "--on-bad-sample skip"; do
            rm -rf few.run
            (ulimit -n "$most" && exec edgewise $command $skip) >/dev/null 2>>log || true
        done
    done
    [ ! -e "$most.ewpack" ] || edgewise data info "$most.ewpack" --json | grep -E '"(train|test)"' >>packs
done
sort -u packs
grep -q ' sample .*Too many open files' log && echo "samples are named"
grep -E 'skipped|left out|on-bad-sample|none of' log || echo "none is skipped"
