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
