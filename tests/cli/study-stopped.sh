# Ctrl-C says what is kept and how to go on.
cat >s.study <<'EOF'
[defaults]
command = bench
network = lenet5
threads = 1
warmup = 0
[a]
iters = 400001 400002 400003
EOF
edgewise study s.study --quick --busy 1 >/dev/null 2>said &
sleep 1
kill -TERM $! && wait $! || echo "exit $?"
tail -n 1 said
