# A network that reconstructs its input: training, resuming, and its errors.
few="--width 0.25 --batch 8 --threads 1 --optimizer adam --lr 0.002"
data=synthetic:kind=motion,size=12,train=48,test=16,classes=2
edgewise train video_autoencoder $few --data $data --epochs 2 -o whole 2>&1 | grep -oE '^(epoch +2: loss|loss: )'
edgewise train video_autoencoder $few --data $data --epochs 1 --schedule constant -o part >/dev/null 2>&1
edgewise train video_autoencoder $few --data $data --epochs 2 --schedule constant -o both >/dev/null 2>&1
edgewise train --resume part --epochs 2 2>&1 | grep -c '^loss: '
cut -d, -f1,14-20 part/epochs.csv | sed 's/,.*//'
edgewise eval part/last.ckpt --data $data --json | grep '"error"' | head -1 >a
edgewise eval both/last.ckpt --data $data --json | grep '"error"' | head -1 >b
cmp a b && echo resumed alike
more=synthetic:kind=motion,size=12,train=8,test=16
edgewise eval part/best.ckpt --data $more --anomaly growing,shrinking --csv roc.csv --png roc.png --predictions errors.csv | grep -E '^(anomalies|class)'
head -2 roc.csv
tail -1 roc.csv | cut -d, -f2,3
wc -l <errors.csv
edgewise eval part/best.ckpt --data $more --anomaly sideways 2>&1 || true
edgewise eval part/best.ckpt --data $more --png x.png 2>&1 || true
edgewise train video_autoencoder $few --data $data --epochs 1 --loss cross-entropy 2>&1 || true
edgewise train video_autoencoder $few --data $data --epochs 1 --loss bce 2>&1 || true
edgewise train video_autoencoder $few --data $data --epochs 1 --loss bce --mean 0,0,0 --std 1,1,1 -o bce >/dev/null 2>&1 && echo bce
edgewise eval bce/last.ckpt --data $data | grep -o 'binary cross-entropy.*'
edgewise train lenet5 --data synthetic:train=64,test=16 --epochs 1 --batch 16 --loss l1 --threads 1 -o l1 2>&1 | grep -o '^accuracy: '
edgewise eval l1/last.ckpt --data synthetic:train=64,test=16 --json | grep loss_name
awk -F, 'NR == 2 { print ($18 < 1 ? "validated by l1" : "loss " $18) }' l1/epochs.csv
edgewise train lenet5 --data synthetic:train=64,test=16 --epochs 1 --batch 16 --loss mse --label-smoothing 0.1 2>&1 || true
edgewise export part/best.ckpt -o ae.onnx >/dev/null 2>&1
edgewise eval ae.onnx --data $data --json | grep '"error"' | head -1 | cut -c1-14
edgewise compile part/best.ckpt -o ae.ewe >/dev/null 2>&1 && edgewise eval ae.ewe --data $data | grep -c 'mean squared error, output against input'
