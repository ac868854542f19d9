# The live page's server is sandboxed before it answers the first request, and still works.
grep -q '^Seccomp:' /proc/self/status || { echo "this kernel has no seccomp" >&2; exit 77; }
edgewise bench lenet5 --iters 3 --warmup 0 --threads 1 --db r.db >/dev/null
mkfifo where
edgewise serve --port 0 --db r.db >where 2>said &
server=$!
read -r address <where || true
[ -n "$address" ] || { cat said >&2; wait $server || true; exit 77; } # built without the server
grep -E '^(NoNewPrivs|Seccomp):' /proc/$server/status
curl -s "${address}metrics" | grep -c 'edgewise_runs{status="done"} 1'
kill $server
wait $server || true
