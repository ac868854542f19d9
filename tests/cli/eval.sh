#!/usr/bin/env bash
# Scores, and the confusion matrix as text, CSV and PNG; mistakes are named.
export XDG_CACHE_HOME=$PWD
edgewise train lenet5 --data synthetic:train=320,test=200 --epochs 1 --batch 16 --lr 0.02 -o run --json 2>/dev/null >result
edgewise eval run/best.ckpt --data synthetic:train=320,test=200 --csv m.csv --png m.png --json >eval.json
accuracy() { sed -n "s/.*\"$1\": \([0-9.e-]*\),*/\1/p" "$2" | head -n 1; }
[ "$(accuracy test_accuracy result)" = "$(accuracy accuracy eval.json)" ] || echo "train and eval differ"
[ "$(accuracy test_f1 result)" = "$(accuracy f1 eval.json)" ] || echo "F1 differs"
wc -l <m.csv
head -n 1 m.csv
head -c 4 m.png | tail -c 3 && echo
edgewise eval run/best.ckpt --data synthetic:37 | grep -c '^ *[0-9]* .* [01]\.[0-9]'
edgewise eval run/best.ckpt --data synthetic:train=320,test=200 | grep -E '^(lenet5|class)'
edgewise eval run/best.ckpt || true
edgewise export lenet5 -o net.onnx >/dev/null 2>&1
edgewise eval net.onnx --data synthetic || true
edgewise eval run/best.ckpt --data nowhere || true
# Top 5, all predictions, the worst mistakes; an engine gives the same results as its network.
edgewise eval run/best.ckpt --data synthetic:100 --predictions p.csv --mistakes worst.png >text
head -n 1 p.csv
accuracy=$(sed -n 's/^accuracy: *\([0-9.]*\)%.*/\1/p' text)
awk -F, -v a="$accuracy" 'NR > 1 { n++; k += $4; t += $4; for (i = 8; i <= 14; i += 2) t += $3 == $i }
    END { print n, (100 * k / n == a) ? "accuracy agrees" : "accuracy differs", 100 * t / n }' p.csv >seen
cut -d " " -f 1-3 seen
top=$(sed -n 's/^top 5: *\([0-9.]*\)%.*/\1/p' text)
awk -v t="$top" '{ print ($4 == t) ? "top 5 agrees" : "top 5 differs: " $4 " " t }' seen
head -c 4 worst.png | tail -c 3 && echo
[ "$(grep -c '^ *[0-9]* *[0-9]* .* [0-9.]*$' text)" -gt 0 ] && grep -o '^mistakes:' text
edgewise export run/best.ckpt -o trained.onnx >/dev/null 2>&1
edgewise compile trained.onnx -o one.ewe >/dev/null 2>&1
edgewise compile trained.onnx --batch 1-8 -o range.ewe >/dev/null 2>&1
for e in one range; do edgewise eval $e.ewe --data synthetic:100 | grep ^accuracy; done | uniq -c | tr -s " " | cut -d " " -f 2
edgewise eval one.ewe --data synthetic:100 | grep ^accuracy | cut -d , -f 1 | diff - <(grep ^accuracy text | cut -d , -f 1)
# More classes than the data set has: a warning, since it is rarely intended; the others have the network's names.
edgewise eval resnet9-cifar10 --data synthetic:kind=shapes,size=32,classes=8,train=40,test=200 --csv few.csv >/dev/null 2>&1
head -n 1 few.csv
edgewise eval run/best.ckpt --data synthetic:classes=4,train=40,test=20 2>&1 >/dev/null | grep 'classes' || echo "not a word"
# Refused before any work: nothing is written.
edgewise eval run/best.ckpt --data synthetic:20 --csv first.csv --png nowhere/m.png || ls first.csv 2>/dev/null || true
# The picture has the same title whatever else is written, and room for it.
two=synthetic:kind=shapes,size=16,classes=2,train=32,test=8
edgewise train lenet5 --data $two --epochs 1 --batch 8 -o two >/dev/null 2>&1
edgewise eval two/best.ckpt --data $two --png two.png >/dev/null 2>&1
edgewise eval two/best.ckpt --data $two --png all.png --predictions two.csv >/dev/null 2>&1
cmp two.png all.png && od -An -tu1 -j 18 -N 2 two.png | awk '{ print (256 * $1 + $2 > 340) ? "wide enough" : "narrow" }'
# NaN scores predict no class, which is reported.
nan=$CASES/../fixtures/finds/nan-score.onnx few=synthetic:size=8,train=40,test=20
edgewise eval "$nan" --data $few --mean 0.5 --std 0.5 --predictions nan.csv --mistakes nan.png | grep -E '^(accuracy|no answer|top 5|mistakes)' | cut -d , -f 1
sed -n 2p nan.csv
edgewise eval "$nan" --data $few --mean 0.5 --std 0.5 --json | grep -E '"(accuracy|unanswered|top5_accuracy)"'
edgewise run "$nan" --random 2>/dev/null | grep -E 'class|not finite'
edgewise compare "$nan" "$nan" | grep 'top class'
# An exit status for scripts.
edgewise eval lenet5-mnist --data synthetic:train=10,test=40 --min-accuracy 0 >/dev/null 2>&1 && echo passed
edgewise eval lenet5-mnist --data synthetic:train=10,test=40 --min-accuracy 1 2>&1 >/dev/null | sed 's/accuracy [0-9.]* %/accuracy N %/' || true
edgewise eval lenet5-mnist --data synthetic:train=10,test=40 --min-accuracy 1 --db gate.db >/dev/null 2>&1 || echo "exit $?"
edgewise results --db gate.db --columns status # measured all the same
