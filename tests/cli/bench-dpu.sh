#!/usr/bin/env bash
# The modelled DPU: a table of layers, several networks, a sweep, and refused options.
edgewise bench lenet5 --device dpu:kv260 | tr -s ' '
edgewise bench lenet5 resnext50_32x4d --device dpu:B1152,cores=1 | tr -s ' '
edgewise bench lenet5 --device dpu --json | grep -o '"quality": *"modelled"'
edgewise bench lenet5 --device dpu --sweep --picture sweep.svg 2>/dev/null | tail -n 2
grep -c '<circle' sweep.svg
edgewise bench lenet5 --device dpu --sweep --picture sweep.png 2>&1 | grep picture
edgewise bench lenet5 --sweep 2>&1 >/dev/null | head -n 1
edgewise bench lenet5 --device dpu:B4097 2>&1 | head -n 1
edgewise bench --protocol scale --device dpu | tail -n 1
edgewise bench --protocol scale --device dpu | grep 'NeuralScale.*1.00' | tr -s ' '
edgewise bench --protocol scale --device dpu --db x.db 2>&1 | head -n 1
edgewise bench lenet5 --device dpu,cores=1 --db store.db >/dev/null
edgewise results --db store.db --columns network,quality,median_ms,parameters | tail -n 1 | tr -s ' '

# The study's sections: modelled times are not noisy, setup runs only what the jobs need, and the report has both lines.
edgewise study scale --quick --only dpu,dpu-neuralscale,net=vgg11_cifar --busy 0 >/dev/null 2>&1 || echo "status $?"
edgewise results --where "quality = 'modelled' and noise is null" | grep -c vgg11_cifar
ls study-data
edgewise report --figure dpu-line --still -o line.html 2>/dev/null
grep -oE "Lines by least squares[^<]*" line.html | sed -E 's/\(p [0-9.e-]+/(p N/g; s/ Published:.*//'
