#!/usr/bin/env bash
# The list of the studies' tables and figures, the tables that need no run, and errors.
# once: numbers of tables and figures; report/reproduce runs the code on small ones.
edgewise reproduce | awk 'NR > 1 { split($1, p, "-"); n[p[1]]++ } END { for (s in n) print s, n[s] }' | sort
edgewise reproduce --json | grep -c '"state"'
edgewise reproduce fits --json | grep -c '"planned"'
edgewise reproduce TRAIN-fig9a --simulate agx-xavier --json 2>&1 || echo "exit $?"
edgewise reproduce --json -o listed.html 2>/dev/null | grep -c '"state"'
[ -s listed.html ]
edgewise reproduce TRAIN-table2 | sed -E 's/ +[0-9.]+ [KMG]iB/ N/; s/[0-9]+ % left/N % left/g; s/to batch [0-9]+( or more)?/to batch N/g; s/  +/ /g'
edgewise reproduce train-table3 | grep '^k '
for id in TRAIN-fig1 TRAIN-fig77 SCALE-fig8 TRAIN-sec5.4.4; do
    edgewise reproduce $id 2>error || echo "exit $?"
    cat error
done
edgewise reproduce -o all.html 2>&1
grep -c 'TRAIN-fig8' all.html
# Regression: STL-10's table must use STL-10's jobs, also in reduced form; there were none, and CIFAR-10's were shown
# under its name.
for study in nx-scratch nx-transfer; do
    edgewise study $study --quick --dry-run --only stl10-alexnet,stl10-shufflenet,stl10-squeezenet,stl10-resnet50,stl10-mobilenet 2>/dev/null |
        grep -oE '(stl10|cifar10)-[a-z]+' | sort -u
done
# Figure 4's parts are waiting, computing and the whole epoch, for each network.
for part in a b c; do
    edgewise reproduce TRAIN-fig4$part --simulate agx-xavier --still --db four.db 2>/dev/null | grep -E '^[A-Z][a-z, ]*: (lenet5|mobilenet|resnet)'
done
# On a simulated board: the figure of power modes next to the published one, and the agreement of their shapes.
edgewise reproduce TRAIN-fig9a --simulate agx-xavier --only lenet --still >out.txt 2>log.txt
grep -c '^[a-n]  ' out.txt
sed -n '/^The shape/,$p' out.txt | grep train-modes | cut -d ' ' -f 2- | sed -E 's/ +/ /g; s/^ //'
[ -s reproduce-TRAIN-fig9a.html ]
edgewise reproduce | grep TRAIN-fig9a | sed -E 's/ +/ /g'
# A page that cannot be written is refused before any work.
mkdir fresh
cd fresh || exit
edgewise reproduce TRAIN-fig2a --simulate agx-xavier -o nowhere/x.html 2>&1 || ls -A
