# Ctrl-C prints what is kept and how to continue.
cat >s.study <<'EOF'
[defaults]
command = bench
network = lenet5
threads = 1
warmup = 0
qps = 10
[a]
iters = 601 602 603
EOF
edgewise study s.study --quick --busy 1 >/dev/null 2>said &
study=$!
# It is working: its run is in the store.
until edgewise results --where "status = 'running'" --csv 2>/dev/null | tail -n +2 | grep -q .; do
    kill -0 $study || { cat said; exit 1; }
    sleep 0.05
done
kill -TERM $study && wait $study || echo "exit $?"
tail -n 1 said
# Also while it prepares its data.
printf '[study]\ntitle = t\nsetup = big | data make --kind shapes --side 96 --train 60000 --to {}\n[defaults]\ncommand = bench\nnetwork = lenet5\n[a]\nbatch = 1\n' >t.study
env --default-signal=INT edgewise study t.study >making 2>&1 & # the shell has jobs ignore it
study=$!
until grep -q 'making big' making; do
    kill -0 $study || { cat making; exit 1; }
    sleep 0.05
done
kill -INT $study && wait $study || echo "exit $?"
cat making
ls -d big 2>/dev/null || echo "no half-made data"
