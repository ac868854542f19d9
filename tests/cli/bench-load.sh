# Streams, rates, durations, selected percentiles and every run as CSV; options for a single network are refused with
# several.
edgewise bench lenet5 --iters 30 --warmup 1 --threads 1 --streams 2 --qps 1000 --percentiles 50,99.9 --csv runs.csv --json 2>/dev/null >out.json
sed -n 's/ *"\(streams\|runs\|threads\)": /\1 /p' out.json
grep -A 3 percentiles_ms out.json | grep -c '"\(50\|99.9\)": [0-9]'
head -n 1 runs.csv
tail -n +2 runs.csv | awk -F, '{ if ($3 - ($1 * 1) > 1e-6 || $3 < $1 - 1e-6) late++; n++ } END { print n, "runs,", late + 0, "off their time" }'
edgewise export lenet5 -o net.onnx >/dev/null 2>&1
edgewise compile net.onnx -o net.ewe >/dev/null 2>&1
edgewise bench net.ewe --streams 2 --iters 10 --duration 0.05 2>/dev/null | head -n 1 | sed 's/, [a-z0-9]*$//'
edgewise bench net.ewe --threads 1 --beside lenet5,net.ewe --iters 10 2>/dev/null | sed -n '1,2s/, [0-9a-z.]*\( runs.s\)*$//p'
edgewise bench lenet5 --beside lenet5,,net.ewe --iters 1 2>&1 || echo "exit $?"
edgewise bench lenet5 net.ewe --qps 5 2>&1 || echo "exit $?"
edgewise bench lenet5 --percentiles 50,x 2>&1 || echo "exit $?"
edgewise bench lenet5 --train --streams 2 2>&1 || echo "exit $?"
