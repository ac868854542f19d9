#!/usr/bin/env bash
# A network learns; its checkpoints are networks too; a folder with a run is not overwritten.
edgewise train lenet5 --data synthetic:train=400,test=100 --samples 320 --epochs 2 --batch 32 --lr 0.05 -o run --json 2>log >result
grep -q '"test_accuracy": ' result
grep -o '"best_chosen_on": "[a-z]*"' result
edgewise train lenet5 --data synthetic:train=64,test=50 --epochs 2 --batch 32 --val-split 0 -o all --json 2>/dev/null | grep -o '"best_chosen_on": "[a-z]*"'
for key in test_f1 epochs epoch_s compute_s stall_s overhead_s images_per_s peak_rss_bytes; do
    grep -q "\"$key\": " result || echo "no $key"
done
grep -c '^epoch ' log
ls run
wc -l <run/batches.jsonl
wc -l <run/epochs.csv
wc -l run/batches.csv
wc -l run/epochs.jsonl
grep -E '^(network|samples|lr) ' run/options.ini
edgewise info run/best.ckpt | grep '^parameters'
edgewise export run/best.ckpt -o net.onnx >/dev/null
edgewise run net.onnx --random --top 1 2>/dev/null | head -n 1
edgewise train lenet5 --data synthetic:train=80,test=16 -o run || true
edgewise train lenet5 || true
edgewise train --resume run --lr 1 || true
edgewise train lenet5 --data synthetic:train=80,test=16 -o /dev/null/x || true
edgewise train --resume run --epochs 1 || true
edgewise train --resume run >again 2>/dev/null
cut -d , -f 1 run/epochs.csv
edgewise train --resume run --epochs 10 2>&1 >/dev/null | grep -c '^epoch ' # 10 is the default, too
edgewise train lenet5 --data synthetic:train=80,test=16 --schedule multistep || true
edgewise train lenet5 --width 2 --init run/best.ckpt --data synthetic:train=64,test=10 --epochs 1 --val-split 0 -o wide >/dev/null 2>log
head -n 1 log
head -c 1000 run/last.ckpt >cut.ckpt
edgewise info cut.ckpt || true
# A missing file is named, and the training so far is kept.
edgewise data make --kind shapes --side 16 --classes 3 --train 32 --test 6 --to shapes >/dev/null
rm shapes/train/disc/000000.png
touch shapes/train/disc/000000.png
edgewise train lenet5 --input 16x16x3 --data shapes --batch 8 --epochs 2 --val-split 0 -o gone 2>&1 >/dev/null | tail -n 2
edgewise train --resume gone --on-bad-sample skip 2>/dev/null | grep '^samples'
# Killed before the first epoch is complete, it can be resumed.
edgewise train lenet5 --data synthetic:train=2000,test=50 --epochs 1 --batch 4 --threads 1 -o killed >/dev/null 2>&1 &
while [ ! -f killed/last.ckpt ]; do sleep 0.02; done
{ kill -9 $! && wait $!; } 2>/dev/null || true
edgewise train --resume killed >/dev/null 2>&1 && wc -l <killed/epochs.csv
# Curves for TensorBoard: a file that begins with its version and has a value per epoch and curve.
edgewise train lenet5 --data synthetic:train=64,test=50 --epochs 2 --batch 32 --threads 1 --tensorboard board -o curves >/dev/null 2>&1
tr -cd '[:print:]' <"$(ls board/events.out.tfevents.*)" | grep -o -E 'brain.Event:2|accuracy/validation' | uniq -c | tr -s ' '
# Security: a foreign checkpoint does not determine where curves and results are written.
rm -r board
edgewise train --resume curves --epochs 3 2>&1 >/dev/null | grep '^warning: curves' && [ ! -e board ] && echo "nothing there"
edgewise train --resume curves --epochs 4 --tensorboard board >/dev/null 2>&1 && [ -e board ] && echo "there again"
# Security: nor a program that is started.
edgewise train lenet5 --data synthetic:train=64,test=50 --epochs 1 --batch 32 --threads 1 --power-from 'touch started; echo 5; sleep 60' -o metered >/dev/null 2>&1
rm started
edgewise train --resume metered --epochs 2 2>&1 >/dev/null | grep '^warning: metered' && [ ! -e started ] && echo "not started"
edgewise train --resume metered --epochs 3 --power-from 'touch started; echo 5; sleep 60' >/dev/null 2>&1 && [ -e started ] && echo "started"
# Few pictures need no --batch: the default is at most their number, and a resumed run keeps it.
edgewise train lenet5 --data synthetic:train=60,test=20 --epochs 1 --threads 1 -o few 2>&1 >/dev/null | grep '^batch'
edgewise train --resume few --epochs 2 2>&1 >/dev/null | grep -o ', batch [0-9]*'
edgewise train lenet5 --data synthetic:train=60,test=20 --batch 64 -o none 2>&1 | grep -o 'a batch of 64 is more than its 54 samples'
# Epochs without validation have no scores, and the last one always has some; a resumed run keeps the schedule.
edgewise train lenet5 --data synthetic:train=120,test=20 --epochs 3 --eval-every 2 --batch 16 --threads 1 -o some 2>/dev/null | grep '^chosen'
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { print $at["epoch"], ($at["f1"] == "" ? "no" : "a"), "score,", ($at["eval_s"] == "" ? "no" : "a"), "time" }' some/epochs.csv
edgewise train --resume some --epochs 5 2>log | grep '^chosen' # 2 and 3, then 4 and 5
grep -c '; validation' log
