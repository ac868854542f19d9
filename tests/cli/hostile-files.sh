# A folder may contain a pipe without a writer, a link, a file that names one file many times, or one that unpacks to a
# thousand times its size.  None of it may hang, or use unbounded memory.
export EW_UNIT=test
limit() { ulimit -v "$1" && edgewise version; } # which a program built with sanitizers cannot run under
bounded() {
    (limit "$1") >/dev/null 2>&1 || set -- unlimited "${@:2}"
    (ulimit -v "$1" && shift && timeout 60 edgewise "$@" 2>&1) || echo "exit $?"
}

# A pipe: refused at once by every command that is given one, skipped in a folder.
mkdir -p images/a images/b
mkfifo pipe images/a/x.png
edgewise data make --kind digits --train 2 --test 1 --to set >/dev/null 2>&1
cp "$(find set -name '*.png' | head -n 1)" images/b/y.png
for command in "info pipe" "run pipe --random" "run lenet5 -i pipe" "compile pipe -o x.ewe" "study ./pipe" \
    "data info pipe" "train lenet5 --data images --init pipe --classes 2" "eval pipe --data images" "report --db pipe" \
    "predict --from pipe --workload a" "recommend --from pipe --workload a --limit power=1W" "scale select vgg11_cifar --from pipe --latency 1ms"; do
    # shellcheck disable=SC2086
    timeout 20 edgewise $command >/dev/null 2>err.txt && echo "$command: ok" || echo "$command: exit $? $(head -n 1 err.txt)"
done
timeout 20 edgewise data info images | grep -E '^(train|from)'
mkdir -p board/proc && mkfifo board/proc/cpuinfo board/proc/meminfo
timeout 20 edgewise probe --root board >/dev/null && echo "probe: ok"
timeout 20 edgewise probe --root board --capture copy >/dev/null && echo "capture: ok"

# A class folder behind a link is followed, like links to files.
mkdir -p linked/a && mv images/b linked-b && ln -s ../linked-b linked/b && cp linked-b/y.png linked/a/z.png
edgewise data info linked | grep -E '^(train|classes)'

# Regression: 200 names of one file of 20 MB took 4 GB.
cp "$CASES/../fixtures/finds/external-alias.onnx" .
truncate -s 20000000 w.bin
bounded 1000000 info external-alias.onnx | grep parameters | tail -n 1

# 100 MB of zeros in 0.1 MB: more than a file of its size may contain.
mkdir gz
head -c 100000000 /dev/zero | gzip >gz/train-images-idx3-ubyte.gz
bounded 600000 data info gz

# More memory than there is: the error names the network.  (Not with sanitizers, which reserve the whole address space.)
if (limit 3000000) >/dev/null 2>&1; then
    bounded 3000000 bench lenet5 --batch 200000 --iters 1 >memory.txt
    grep -q '^edgewise: network lenet5 at batch 200000: no memory for a buffer of [0-9]* bytes$' memory.txt || cat memory.txt
fi
