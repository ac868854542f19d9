# Recommendations from a file: repeated limits, a list of configurations, and limits that cannot be met.
modes=$CASES/../fixtures/train-modes.csv
edgewise recommend --from "$modes" --workload resnet --modes 8/2265/1377/2133 --limit power=20W --limit time=550s --goal energy
edgewise recommend --from "$modes" --workload resnet --modes 8/2265/1377/2133 --limit power=12W --limit time=400s 2>&1 || echo "exit $?"
edgewise recommend --from "$modes" --workload resnet --modes 8/2265/1377/2133 --limit power=1W 2>&1 || echo "exit $?"
edgewise recommend --from "$modes" 2>&1 || echo "exit $?"
edgewise recommend --from "$modes" --workload resnet --limit speed=3 2>&1 || echo "exit $?"
edgewise recommend --from "$modes" --workload resnet --limit life=3h 2>&1 || echo "exit $?"
printf 'mode,cores,time_s,power_w,accuracy,latency_ms\nwide,4,9,8,0.93,30\nnarrow,4,4,6,0.91,12\nint8,4,2,6,0.88,5\n' >list.csv
edgewise recommend --from list.csv --goal time --limit accuracy=0.9
edgewise recommend --from list.csv --goal accuracy --limit latency=16.7ms --json | grep name
# Configurations that are no power modes need no settings.
printf 'mode,time_s,accuracy\nsmall,1,0.5\nlarge,2,0.9\n' >plain.csv
edgewise recommend --from plain.csv --limit accuracy=0.8 --json | grep name
# Measured values, and those of the fit beside them.
edgewise recommend --from "$modes" --workload resnet --modes 8/2265/1377/2133 --limit power=20W --json >all.json
grep -c '"fitted"' all.json || true
# Settings that the file has no column of are neither shown nor set.
printf 'cores,cpu_mhz,time_s,power_w\n2,1000,1.5,3\n4,1000,1,4\n4,2000,0.6,6\n2,2000,0.9,5\n' >pi.csv
edgewise recommend --from pi.csv --limit power=4.5W 2>&1 | grep cores
edgewise recommend --among rpi5 --network lenet5 | head -1
