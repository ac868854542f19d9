# Reports of the measurements of two commands, and errors.
edgewise bench lenet5 --iters 3 --warmup 0 --threads 1 --db r.db >/dev/null 2>&1
edgewise bench lenet5 --iters 3 --warmup 0 --threads 1 --db r.db >/dev/null 2>&1
edgewise report --db r.db --figure batch | sed -n 's/^not shown: \(Batch size\): .*/\1 is not shown/p'
edgewise report --db r.db --figure speedup | sed -n 's/^not shown: \(Gain of the engine\): .*/\1 is not shown/p'
edgewise report --db r.db | sed -n 's/^[0-9]* more figures/N more figures/p'
edgewise report --db r.db -o r.html
grep -c '</html>' r.html
edgewise report --db r.db --still --figure pareto -o still.html
grep -c '<script' still.html || true
edgewise report --db r.db -o r.md
head -n 1 r.md
edgewise report --db r.db --json | head -n 3
cp r.db s.db
edgewise report compare r.db s.db --format csv | head -n 1
edgewise report --db none.db || true
edgewise report --db r.db --study none || true
edgewise report --db r.db other || true
edgewise report --db r.db compare nano orin || true
edgewise serve --bind 0.0.0.0 || true
edgewise serve --bind here --token 0123456789abcdef || true
edgewise report --db r.db --figure nosuch 2>&1 | cut -c 1-60
edgewise report --db r.db -o r.pdf || true
[ ! -e r.pdf ] && echo "no r.pdf"
