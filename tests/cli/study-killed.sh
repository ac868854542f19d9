# Killed three times in the middle, a study still runs every job once.  Jobs spend most of their time waiting, by qps.
cat >k.study <<'EOF'
[defaults]
command = bench
network = lenet5
threads = 1
warmup = 0
qps = 100
[a]
iters = 21 22 23 24 25 26 27 28 29 30
EOF
for i in 1 2 3; do
    edgewise study k.study --quick >/dev/null 2>&1 &
    sleep 0.4
    { kill -9 $! && wait $!; } 2>/dev/null || true
done
edgewise study k.study --quick >/dev/null 2>&1
edgewise results --where "status = 'done'" --order iters --columns iters
edgewise results --where "status = 'running'" 2>&1
