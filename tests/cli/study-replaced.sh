# A study whose program is replaced while it runs, as by a build, continues with the original one.  Regression: its next
# job failed, or ran another version than the store says.
cat >r.study <<'EOF'
[defaults]
command = bench
network = lenet5
threads = 1
warmup = 0
qps = 100
[a]
iters = 41 42 43 44
EOF
cp "$(command -v edgewise)" program
./program study r.study --quick --db r.db >/dev/null 2>&1 &
until [ "$(edgewise results --db r.db --where "status = 'done'" --csv 2>/dev/null | wc -l)" -gt 1 ]; do sleep 0.05; done
printf '#!/bin/sh\nexit 7\n' >other && chmod +x other && mv other program
wait $! && echo done
edgewise results --db r.db --order iters --columns iters,status
