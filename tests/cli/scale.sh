#!/usr/bin/env bash
# Widths for a size, the scaling ratio for a limit, and errors.
# once: whole networks are measured; scale/ runs the code.
records=$CASES/../fixtures/neuralscale
try() { edgewise scale "$@" 2>&1 && echo "passed: $*"; return 0; }

edgewise scale fit vgg11_cifar --from "$records/vgg_10_eff_c10_14.csv"
edgewise scale generate vgg11_cifar --from "$records/vgg_10_eff_c10_14.csv" --ratio 0.25 -o quarter.widths
tail -n 1 quarter.widths
edgewise scale generate vgg11_cifar --from "$records/vgg_10_eff_c10_14.csv" --ratio 1 --svg widths.svg >/dev/null
grep -c '<polyline' widths.svg
edgewise info vgg11_cifar --width-list quarter.widths --json | grep '"params"'
edgewise scale generate lenet5 --macs 100000
edgewise scale generate vgg11_cifar --from "$records/vgg_10_eff_c10_14.csv" --macs 20e6 --json | grep '"macs"'

printf 'parameters,median_ms\n100000,2.1\n200000,3.0\n400000,5.2\n800000,8.9\n' >points.csv
edgewise scale select vgg11_cifar --latency 5ms --from points.csv
edgewise scale select mobilenet_v2_cifar --classes 100 --latency 16.67ms --published
edgewise bench lenet5 --iters 2 --db store.db >/dev/null
edgewise bench lenet5 --width 0.5 --iters 2 --db store.db >/dev/null
edgewise scale select lenet5 --memory 1M --from store.db --json | grep '"points"'
edgewise scale select lenet5 --memory 1M --from store.db | head -n 1 | sed 's/[0-9.]*[0-9]/N/g'

# Simulated results do not count for this machine's fit.
edgewise bench vgg11_cifar --width 0.25 --device dpu:zcu104 --db store.db >/dev/null
edgewise scale select lenet5 --latency 1s --from store.db --json | grep '"points"'
edgewise scale select lenet5 --latency 1s --from store.db --where "parameters > 0" --json | grep '"points"'

# A search of two short iterations; stopped after the first and resumed it gives the same result.
descend() {
    edgewise scale search vgg11_cifar --data synthetic:kind=shapes,train=64,test=16 --batch 8 --warmup 1 \
        --prune-every 1 --prune-units 300 --fraction 0.9 --lr 0.02 --threads 1 "$@" 2>/dev/null
}
descend --iterations 1 -o short >/dev/null
descend --iterations 2 -o short | tail -n 1 >resumed
descend --iterations 2 -o whole | tail -n 1 >whole.txt
cmp resumed whole.txt && cmp short/iteration-01.csv whole/iteration-01.csv && echo "the same"
# Records with other options are not used, and two searches cannot use one folder at the same time.
edgewise scale search vgg11_cifar --data synthetic:kind=shapes,train=64,test=16 --batch 8 --seed 2 -o whole 2>&1 | grep -o "another search.*"
flock whole edgewise scale search vgg11_cifar --data synthetic:kind=shapes,train=64,test=16 --batch 8 -o whole 2>&1 | grep -o "another process.*"
edgewise scale fit vgg11_cifar --from whole/iteration-01.csv >/dev/null 2>&1 && echo "fitted"

try generate vgg11_cifar
try search lenet5 --data synthetic -o none
try search vgg11_cifar -o none
try search vgg11_cifar --classes 5 --data synthetic:kind=shapes -o none
# Errors that would otherwise appear after hours.
touch file
try search vgg11_cifar --data synthetic:kind=shapes,train=64 -o none --batch 100
try search vgg11_cifar --data synthetic:kind=shapes,train=64 -o none --batch 8 --prune-units 2752
try search vgg11_cifar --data synthetic:kind=shapes,train=64 -o file --batch 8
try search vgg11_cifar --data synthetic:kind=shapes,train=64 -o nowhere/none --batch 8
try search vgg11_cifar --data synthetic:kind=shapes,train=64 -o begun --batch 8 --db nowhere/s.db
[ ! -e begun ] || echo "it began"
try generate vgg11_cifar --ratio 1 --macs 5
try generate vgg11_cifar --params 10
try generate lenet5 --from "$records/vgg_10_eff_c10_14.csv" --ratio 1
try fit vgg11_cifar
try select lenet5 --latency 5 --from points.csv
try select lenet5 --latency 1ms --from points.csv
try select lenet5 --memory 1M --from points.csv
try widen lenet5
try fit lenet6 --from points.csv
echo "6 x" >bad.widths
echo "6 16 120" >short.widths
edgewise info lenet5 --width-list bad.widths 2>&1 || true
edgewise info lenet5 --width-list short.widths 2>&1 || true
edgewise info lenet5 --width-list quarter.widths --width 0.5 2>&1 || true
