# Recorded runs: listed, compared, copied to another file and back, and an invalid condition.
export EW_UNIT=test
edgewise bench lenet5 --iters 3 --warmup 1 --threads 1 --db a.db >/dev/null
edgewise bench lenet5 --iters 3 --warmup 1 --threads 1 --batch 4 --db a.db >/dev/null
edgewise bench nosuch --db a.db 2>&1 || true
edgewise results --db a.db --columns id,network,batch,parameters,machine_unit,status,reason
edgewise results --db a.db --columns id,batch --where "batch > 1 and status = 'done'"
edgewise results --db a.db --csv --where "id = 1" | head -c 30
echo
edgewise results --db a.db --csv --columns id,batch,status
edgewise results --db a.db --json --columns batch --where "id = 2" | tr -d ' \n'
echo
edgewise results --db a.db --csv --columns id,no_such 2>&1 || echo "exit $?"
# Regression: options of other commands are not differences between runs: the table had seventy columns.
edgewise train lenet5 --data synthetic:train=32,test=16 --batch 16 --epochs 1 --db m.db >/dev/null 2>&1
edgewise results import a.db --db m.db >/dev/null
edgewise results --db m.db --where "status = 'done'" | head -n 1 | tr -s ' '
edgewise results diff 1 2 --db a.db | grep '^batch' | tr -s ' '
edgewise results export b.db --db a.db
edgewise results export b.db --db a.db
edgewise results import b.db --db c.db --where "batch = 4"
edgewise results import b.db --db c.db --json
edgewise results --db a.db --where "1) or (1" 2>&1 || echo "exit $?"
edgewise results --db a.db --where "id = 1; drop table run" 2>&1 || echo "exit $?"
edgewise results --db a.db --where "no_such > 1" 2>&1 || echo "exit $?"
edgewise results --db none.db 2>&1 || echo "exit $?"
edgewise results diff 1 9 --db a.db 2>&1 || echo "exit $?"
# Regression: results recorded under an empty name, or one that SQLite takes for memory, were lost without a word.
for db in '' ':memory:' 'file:x.db?mode=memory'; do
    edgewise bench lenet5 --iters 1 --warmup 0 --threads 1 --db "$db" 2>&1 >/dev/null || echo "exit $?"
    [ ! -e "$db" ] || edgewise results --db "$db" --columns network
done
