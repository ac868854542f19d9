#!/usr/bin/env bash
# One network: layers, summary, JSON, picture; with options.
edgewise info lenet5 | sed '/^packed/d; /^activations/d; /^training/d'
value() { edgewise info "$@" --json | sed -n "s/^  \"$KEY\": \([0-9]*\),*$/\1/p"; }
KEY=params value resnet50 --input 32x32x3 --classes 10
KEY=macs value resnet50 --batch 8
for w in 0.25 0.5 0.75 1; do KEY=flops_thop value mobilenet_v2_cifar --width $w; done
KEY=cdl value mobilenet_v2_cifar
for key in nodes weight_bytes activation_bytes train_bytes; do
    [ "$(KEY=$key value lenet5)" -gt 0 ] || echo "no $key"
done
# Memory grows with the batch; arithmetic of one image does not.
[ "$(KEY=train_bytes value lenet5 --batch 64)" -gt "$(KEY=train_bytes value lenet5)" ]
edgewise info lenet5 --svg lenet5.svg >/dev/null
tail -n 1 lenet5.svg
