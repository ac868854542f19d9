# Killed in the middle three times, a study still does every job once.
cat >k.study <<'EOF'
[defaults]
command = bench
network = lenet5
threads = 1
warmup = 0
[a]
iters = 4001 4002 4003 4004 4005 4006 4007 4008 4009 4010
EOF
for i in 1 2 3; do
    edgewise study k.study --quick >/dev/null 2>&1 &
    sleep 0.4
    { kill -9 $! && wait $!; } 2>/dev/null || true
done
edgewise study k.study --quick >/dev/null 2>&1
edgewise results --where "status = 'done'" --order iters --columns iters
edgewise results --where "status = 'running'" 2>&1
