# Untried networks, batches, threads, workers and machines, predicted from stores of runs.
words() { sed -E 's/[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)? (ms|%)/N \3/g; s/interval [0-9.e+-]+ to [0-9.e+-]+/interval N to N/; s/^on [^,]*, /on MACHINE, /; s/median [0-9.]+/median N/'; }
for batch in 1 2 4; do
    for threads in 1 2; do
        edgewise bench lenet5 --batch $batch --threads $threads --warmup 1 --iters 2 --db a.db >/dev/null 2>&1
        edgewise bench lenet5 --batch $batch --threads $threads --warmup 1 --iters 2 --width 0.5 --db b.db >/dev/null 2>&1
    done
done
edgewise predict --from a.db --network lenet5 --batch 8 --threads 1 | words
edgewise predict --from a.db --from b.db --network mobilenet_v2_cifar --batch 2 --threads 2 | words
edgewise predict --from a.db,b.db --network lenet5 --width 0.75 --threads 1 --json | grep -c low90_ms
edgewise predict --from a.db --from b.db --check 2>/dev/null | words
# Two devices with a store each: the second has run one network; the other is predicted from the first.
for batch in 1 2 4; do EW_UNIT=slow edgewise bench lenet5 --batch $batch --threads 1 --warmup 1 --iters 2 --width 0.5 --db d.db >/dev/null 2>&1; done
edgewise predict --from a.db --from d.db --network lenet5 --batch 2 --threads 1 --on slow | sed -n 's/^on slow [^,]*, /on SLOW, /p'
edgewise predict --from d.db --from a.db --network lenet5 --batch 2 --threads 1 --on "$(edgewise results --db a.db --columns machine_unit | sed -n 2p)" | words | tail -1
edgewise train lenet5 --data synthetic:train=128,test=32 --epochs 1 --batch 16 --workers 1 --db a.db >/dev/null 2>&1
edgewise predict --from a.db --network lenet5 --train --batch 16 --threads 1 --data synthetic:train=128,test=32 --workers 2 | words
edgewise predict --from a.db --network lenet5 --train --data mnist 2>&1 | sed "s/ on '[^']*'/ on 'MACHINE'/" || true
edgewise predict --from a.db --network lenet5 --precision fp16 2>&1 || echo "exit $?"
edgewise predict --from a.db --network lenet5 --on jetson 2>&1 | sed "s/only '.*'/only MACHINE/" || true
edgewise predict --from a.db --network lenet5 --board jetson-nano 2>&1 || echo "exit $?"
# Regression: options of modes were ignored.
for other in "--modes all" "--workload a" --plan --check --compare "--simulate agx-xavier" "--seed 1" "-n 5" "--until time=5%" "--html p.html" "--csv p.csv"; do
    # shellcheck disable=SC2086
    edgewise predict --from a.db --network lenet5 $other 2>&1 | head -n 1
done
edgewise predict --from a.db --from b.db 2>&1 || echo "exit $?"
edgewise bench lenet5 --iters 2 --db c.db >/dev/null 2>&1
edgewise predict --from c.db --network lenet5 2>&1 || echo "exit $?"
edgewise predict --from c.db --check 2>&1 || echo "exit $?"
limit=30M
[ -z "${EW_TEST_QUICK:-}" ] || limit=300M # the whole process counts, sanitizers' memory too
edgewise recommend --from a.db --network lenet5 --among batch,threads,width --limit memory=$limit --limit latency=1000ms --from b.db | sed -E 's/^use .*/use X/; s/[0-9]+(\.[0-9]+)?/N/g; s/; relax.*//' | grep -E '^use|^why|at most'
edgewise recommend --from a.db --network lenet5 --among batch --threads 1 --limit memory=0.01M 2>&1 | sed 's/nearest is [0-9.]*/nearest is N/'
edgewise recommend --from a.db --from b.db --network lenet5 --among batch --threads 1 --goal latency --apply -- edgewise bench lenet5 --iters 3 2>/dev/null | sed -E 's/[0-9]+(\.[0-9]+)?/N/g; s/\([^)]*\)//; s/, outside of the interval//; s/measured:|predicted:/stated:/' | tail -1
edgewise recommend --from a.db --network lenet5 --among batch --apply -- true 2>&1 || echo "exit $?"
edgewise recommend --from a.db --network lenet5 --among batch,boards 2>&1 || echo "exit $?"
edgewise recommend --from a.db --network lenet5 --among workers 2>&1 || echo "exit $?"
edgewise recommend --from a.db --network lenet5 --among batch --limit power=3W 2>&1 || echo "exit $?"
