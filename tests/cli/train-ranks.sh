#!/usr/bin/env bash
# Training by several MPI ranks: the same as one process with the same batch, bit-identical when repeated, resumed with
# fewer ranks after one is killed.
command -v mpirun >/dev/null || { echo "no mpirun" >&2; exit 77; }
[ -e "$(dirname "$(command -v edgewise)")/libedgewise-mpi.so" ] || { echo "built without MPI" >&2; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_base_warn_component_unused=0
edgewise data make --kind digits --train 200 --test 40 --to digits >/dev/null 2>&1
train=(edgewise train lenet5 --data digits --batch 20 --threads 1 --workers 1)
# ranks N WORD...: trains with N ranks, quietly
ranks() { mpirun -np "$@" >said.txt 2>&1 || { cat said.txt; return 1; }; }
# far A B: signal-to-difference ratio in dB of two networks' outputs, in tens
far() { edgewise compare "$1/last.ckpt" "$2/last.ckpt" --json | awk -F: '/sqnr/ { print (int($2 / 10) >= 9 || $2 !~ /[0-9]/) ? "as one process" : "far: " $2; exit }'; }
"${train[@]}" --epochs 2 -o one >/dev/null 2>&1
for n in 2 3 4; do # 3 does not divide 20
    ranks $n "${train[@]}" --epochs 2 -o "by$n"
    far one "by$n"
done
cut -d , -f 1,2 by3/ranks.csv
# The times of every rank add up.
awk -F , 'NR > 1 { d = $(NF - 5) - $(NF - 4) - $(NF - 3) - $(NF - 2) - $(NF - 1); if (d < -1e-6 || d > 1e-6) bad++ } END { print bad + 0, "rows do not add up" }' by4/ranks.csv
# Validation and test are divided among ranks, evenly or not, and counted as by one process.
column() { awk -F , -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i } END { print $at }' "$1/epochs.csv"; }
for x in accuracy f1; do [ "$(column one $x)" = "$(column by3 $x)" ] && echo "validation has the same $x"; done
awk -v a="$(column one loss)" -v b="$(column by3 loss)" 'BEGIN { print a - b < 1e-6 && b - a < 1e-6 ? "and loss" : "another loss: " a " " b }'
[ "$(grep -o '"test_accuracy": [0-9.]*' one/result.json)" = "$(grep -o '"test_accuracy": [0-9.]*' by3/result.json)" ] && echo "and so has the test"
ranks 3 "${train[@]}" --epochs 1 --eval-samples 2 -o few # one rank has no sample
column few accuracy
# Batch norm over each rank's samples, or with --sync-bn over all samples as in one process.
norm=(edgewise train resnet9 --width 0.25 --data digits --samples 80 --batch 20 --threads 1 --workers 1 --lr 0.001 --epochs 1)
sqnr() { edgewise compare norm/last.ckpt "$1/last.ckpt" --json | awk -F '[:,]' '/sqnr/ { print $2; exit }'; }
"${norm[@]}" -o norm >/dev/null 2>&1
ranks 3 "${norm[@]}" -o local
ranks 3 "${norm[@]}" --sync-bn -o sync
awk -v a="$(sqnr local)" -v b="$(sqnr sync)" 'BEGIN { if (b > a + 20) print "nearer with --sync-bn"; else print "not nearer:", a, b }'
# The same number of ranks, the same bits.
ranks 3 "${train[@]}" --epochs 2 -o again
for x in by3 again; do edgewise export $x/last.ckpt -o $x.onnx >/dev/null 2>&1; done
cmp by3.onnx again.onnx && echo "the same bits"
# Compressed gradients also learn.
for form in fp16 topk; do
    ranks 2 "${train[@]}" --epochs 2 --compress $form --compress-share 0.05 -o $form
    tail -n 1 $form/epochs.csv | cut -d , -f 1
done
# Gradients not yet sent are stored in checkpoints: resuming gives the same bits.
for form in fp16 topk; do
    on=("${train[@]}" --schedule constant --compress "$form")
    ranks 3 "${on[@]}" --epochs 2 -o "$form-whole"
    ranks 3 "${on[@]}" --epochs 1 -o "$form-half"
    ranks 3 edgewise train --resume "$form-half" --epochs 2
    for x in whole half; do edgewise export $form-$x/last.ckpt -o $form-$x.onnx >/dev/null 2>&1; done
    cmp $form-whole.onnx $form-half.onnx && echo "$form goes on"
    ranks 2 edgewise train --resume "$form-half" --epochs 3 && echo "and with fewer ranks"
done
# A rank is killed: all end, its name is printed, and two resume from the checkpoint.
cat >rank <<'RANK'
#!/bin/sh
echo $$ >"rank$OMPI_COMM_WORLD_RANK.pid"
exec "$@"
RANK
chmod +x rank
mpirun -np 3 ./rank "${train[@]}" --elastic --epochs 100000 --checkpoint-every 0 -o killed >said.txt 2>&1 &
job=$!
until [ -e killed/batches.csv ] && [ "$(wc -l <killed/batches.csv)" -gt 5 ]; do
    kill -0 $job || { cat said.txt; exit 1; }
    sleep 0.05
done
kill -9 "$(cat rank1.pid)"
wait $job || echo "it ended"
# Printed by us, unless mpirun has ended the others first.
if grep -qE 'rank 1 .* is gone' said.txt; then grep -q 'hint: mpirun -np N edgewise train --resume killed' said.txt; fi
grep -qE 'rank 1 .* is gone|process rank 1 ' said.txt && echo "rank 1 is named"
done=$(tail -n 1 killed/epochs.csv | cut -d , -f 1)
[ "$done" != epoch ] || done=0
ranks 2 edgewise train --resume killed --epochs $((done + 2))
tail -n 2 killed/ranks.csv | cut -d , -f 2
# More ranks than samples in a batch; a different seed on one rank.
mpirun -np 3 "${train[@]}" --batch 2 -o small 2>&1 | grep -o 'cannot be divided among 3 ranks' | head -n 1
cat >rank <<'RANK'
#!/bin/sh
exec "$@" --seed "$OMPI_COMM_WORLD_RANK"
RANK
mpirun -np 2 ./rank "${train[@]}" -o other 2>&1 | grep -o 'rank 1 .* has other options or data than rank 0' | sed 's/(.*)/(HOST, PROCESS)/' | head -n 1
# Federated: ranks act as the clients, with the same bits as one process.
fed=(edgewise federate lenet5 --data digits --clients 7 --share 0.7 --local-epochs 1 --batch 8 --threads 1 --rounds 2
    --split dirichlet --alpha 0.5 --drop 0.2 --method scaffold)
"${fed[@]}" -o fed1 >/dev/null 2>&1
ranks 3 "${fed[@]}" -o fed3
for x in fed1 fed3; do
    cut -d , -f 1-11 $x/rounds.csv >$x.csv
    edgewise export $x/last.ckpt -o $x.onnx >/dev/null 2>&1
done
cmp fed1.csv fed3.csv && cmp fed1.onnx fed3.onnx && echo "federated alike"
