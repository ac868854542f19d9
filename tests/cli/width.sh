# On a terminal, help, tables and progress fit its width; in a pipe a table keeps its full width.
command -v script >/dev/null || { echo "no script(1) to make a terminal" >&2; exit 77; }
export EW_UNIT=test
on_terminal() { script -qec "stty cols $1; $2" /dev/null </dev/null | tr -d '\r'; }
widest() { awk '{ if (length > m) m = length } END { print NR == 0 ? "nothing" : (m <= '"$1"') ? "fits '"$1"'" : "is " m " wide" }'; }
edgewise bench lenet5 --iters 3 --warmup 1 --threads 1 --db a.db >/dev/null
edgewise bench lenet5 --iters 3 --warmup 1 --threads 1 --batch 4 --db a.db >/dev/null
echo "help: $(on_terminal 50 'edgewise help' | widest 49)"
echo "help of train: $(on_terminal 60 'edgewise help train' | tail -n +2 | widest 59)"
echo "help on a wide one: $(on_terminal 200 'edgewise help train' | tail -n +2 | widest 99)"
echo "models: $(on_terminal 60 'edgewise models' | LC_ALL=C.UTF-8 widest 60)"
echo "models in a pipe: $(edgewise models | widest 60 | sed 's/is .* wide/is wider/')"
on_terminal 40 'edgewise results --db a.db --columns id,network,batch,parameters,machine_unit,status'
edgewise results --db a.db --csv | cut -d, -f 1 | tail -n 1
# The progress line of `train` is rewritten in place: each of its forms is shorter than the terminal.
edgewise data make --kind digits --train 3000 --test 20 --to made >/dev/null 2>&1
script -qec 'stty cols 50; edgewise train lenet5 --data made --epochs 1 --batch 4 --threads 1' /dev/null </dev/null >train.txt
tr '\r' '\n' <train.txt | sed 's/\x1b\[K//' | grep '^epoch .* left' | widest 49
