# Predictions from a file: the plan, validation, a table, CSV, and invalid input.
modes=$CASES/../fixtures/train-modes.csv
edgewise predict --plan --board agx-orin --count 3 --csv -
edgewise predict --from "$modes" --check --workload resnet | head -2 | cut -c 1-50
edgewise predict --from "$modes" --workload resnet --modes 8/2265/1377/2133 | sed 's/[0-9]*\.[0-9]*/N/g'
edgewise predict --from "$modes" --modes all --board agx-xavier --csv all.csv >/dev/null
wc -l <all.csv
head -1 all.csv
edgewise predict --from "$modes" --json --workload lenet --modes 8/2265/1377/2133 | grep -c mid
head -3 "$modes" >two.csv
edgewise predict --from two.csv --modes 8/1200/900/1600 2>&1 || echo "exit $?"
edgewise predict 2>&1 || echo "exit $?"
edgewise predict --from "$modes" --csv - --json 2>&1 || echo "exit $?"
edgewise predict --from "$modes" --check --csv checked.csv 2>&1 || echo "exit $?"
edgewise predict --from "$modes" --modes 8/1200 2>&1 || echo "exit $?"
edgewise predict --from "$modes" --workload none 2>&1 || echo "exit $?"
printf 'cores,cpu_mhz,gpu_mhz,mem_mhz,time_s\n8,1200,900,1600,3\n4,1200,900,1600,4\n8,2265,900,1600,2\n' >same.csv
edgewise predict --from same.csv --modes 2/1200/900/1600 2>&1 >/dev/null
printf 'cores,time_s\n4,fast\n' >bad.csv
edgewise predict --from bad.csv 2>&1 || echo "exit $?"
edgewise predict --simulate agx-xavier --workload resnet18 --modes 8/2265/1377/2133,4/1200/670/1333,8/1200/900/1600 --csv sim.csv
cat sim.csv
edgewise predict --from sim.csv --modes 8/1200/900/2133 | head -1
edgewise predict --simulate zcu104 --workload resnet18 2>&1 || echo "exit $?"
edgewise predict --simulate agx-xavier --workload resnet18 --compare | cut -c 1-38 | sed 's, *$,,' | head -6
edgewise predict --simulate agx-xavier --workload vgg11 2>&1 || echo "exit $?"
# Columns without a unit that are ambiguous.
printf 'cores,cpu,memory,time\n4,1000,512,3\n' >bare.csv
edgewise predict --from bare.csv 2>&1 | grep 'no unit' || true
# A board without a GPU whose clock could be set, and a file without these columns: nothing names one.
edgewise predict --plan --board rpi5 --count 2 --csv -
printf 'cores,cpu_mhz,time_s,power_w\n2,1000,1.5,3\n4,1000,1,4\n4,2000,0.6,6\n2,2000,0.9,5\n' >pi.csv
edgewise predict --from pi.csv --csv - 2>&1 | cut -d , -f 1-4
edgewise predict --from pi.csv --json 2>&1 | grep -c '"[gm][pe][um]_mhz": null'
edgewise predict --simulate rpi5 --workload lenet5 --modes 4/2400/1000/2133 | cut -d , -f 1-4
edgewise bench lenet5 --simulate rpi5 | head -1
