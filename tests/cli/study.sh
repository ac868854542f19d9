# A study: dry run, run, restart, and invalid files.
export EW_UNIT=test
cat >tiny.study <<'EOF'
[study]
title = A tiny study
order = file
differs = the network is a toy

[defaults]
command = bench
warmup = 1
threads = 1
iters = 5
quick.iters = 2

[lenet]
network = lenet5
batch = 1 2
quick.batch = 1

[bad]
network = nosuch

[mode]
network = lenet5
power-mode = NO_SUCH_MODE

[published]
cite = Nobody, Nowhere
board = Toy board
figure = parameters 61706 | network=lenet5 batch=1
figure = median_ms 3 ms | network=lenet5 batch=64
EOF
edgewise study tiny.study --dry-run | awk 'NR > 1 && NR < 6 { print $1, $2 ~ /=/ ? $2 : "-" }'
edgewise study tiny.study --busy 1 >out.txt 2>err.txt || echo "exit $?"
sed -E 's/: [0-9.]+ s( \([^)]*\))?,/: N s,/; s/ \(others[^)]*\)//; s/, [0-9.:]+( s)? left//' err.txt
grep -E '^(figure|parameters|median_ms|published|differs)' out.txt | tr -s ' '
edgewise results --db edgewise.db --where "status in ('done', 'skipped')" \
    --columns label,batch,power_mode,status,reason,study
edgewise study tiny.study --only lenet --json | grep -E '"(jobs|done|failed|skipped)"'
edgewise study tiny.study --quick --only lenet --busy 1 2>&1 | grep -c 'left\|: [0-9.]* s'
edgewise study tiny.study --only nothing 2>&1 || echo "exit $?"
edgewise study tran-workers 2>&1 || echo "exit $?"
sed -i 's/iters = 5/itres = 5/' tiny.study
edgewise study tiny.study 2>&1 || echo "exit $?"
# Before its data exists the duration of a study is unknown: it must not print 0 seconds.
edgewise study train-workers --quick --dry-run --db none.db | grep 'jobs, 0 done'
# Regression: a review of the commands showed a value with a quote or a semicolon as several words.
printf "[a]\ncommand = train\nnetwork = lenet5\ndata = x;y x'y\n" >quoted.study
edgewise study quoted.study --dry-run --db none.db 2>/dev/null | grep '  edgewise train'
