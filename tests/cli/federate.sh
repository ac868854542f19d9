# Federated learning: rounds, a resumed run with the same result, and errors.
data=synthetic:train=200,test=50,seed=3
quick="--clients 5 --share 0.6 --local-epochs 1 --batch 8 --threads 1 --split dirichlet --alpha 0.5"
edgewise federate lenet5 --data $data $quick --method scaffold --rounds 3 -o whole >/dev/null
edgewise federate lenet5 --data $data $quick --method scaffold --rounds 2 -o parts >/dev/null
edgewise federate --resume parts --rounds 3 >/dev/null
cut -d, -f1-11 whole/rounds.csv >a
cut -d, -f1-11 parts/rounds.csv >b
cmp a b && wc -l <a
edgewise info whole/last.ckpt | grep ^parameters
printf '[nanos]\ncount = 3\nboard = jetson-nano\nmode = 5W\n[pi]\nsamples_per_s = 31\npower_w = 6.1\n' >fleet.ini
edgewise federate lenet5 --data $data $quick --rounds 1 --fleet fleet.ini --share 1 | grep -o 'waited for pi'
printf '[orins]\nboard = orin-nx\nmode = MAXN\n' >maxn.ini
edgewise federate lenet5 --data $data $quick --rounds 1 --fleet maxn.ini --share 1 | grep -o 'waited for orins'
# Clients by a key in the data: three writers, with 100, 60 and 40 samples.
for i in $(seq 200); do if [ $((i % 2)) = 0 ]; then echo anna; elif [ $((i % 5)) = 0 ] || [ $i -gt 150 ]; then echo bert; else echo "clara k."; fi; done >keys.txt
edgewise federate lenet5 --data $data --split key --keys keys.txt --share 1 --local-epochs 1 --rounds 1 --threads 1 2>&1 | sed 's/accuracy.*loss [0-9.]* *//'
head -n 20 keys.txt >short.txt
edgewise federate lenet5 --data $data --split key --keys short.txt || true
edgewise federate lenet5 --data $data --split key || true
edgewise federate lenet5 --data $data $quick --rounds 1 -o whole || true
edgewise federate --resume whole --lr 1 || true
edgewise federate lenet5 --data $data $quick --method scaffold --momentum 0.9 || true
edgewise federate lenet5 --data $data --clients 500 || true
edgewise federate lenet5 --data $data --deadline 5 || true
edgewise federate lenet5 || true
# Security: a folder from somebody else, with a link in the place of its rows.
echo mine >victim
mkdir linked
cp parts/last.ckpt linked/
ln -s ../victim linked/rounds.csv
edgewise federate --resume linked --rounds 4 || cat victim
# Data and folder with the same name: the folder is not taken for the data, nor left behind.
edgewise federate lenet5 --data nowhere -o nowhere >/dev/null 2>&1 || [ -e nowhere ] || echo "no folder"
# One process at a time in a folder.
flock whole edgewise federate --resume whole --rounds 9 2>&1 | grep -o "another process.*"
# Rows in a folder without a checkpoint are kept; those of a run killed in its first round are not.
mkdir kept begun
cp whole/rounds.csv kept/
edgewise federate lenet5 --data $data $quick --rounds 1 -o kept || cmp kept/rounds.csv whole/rounds.csv && echo "kept"
head -n 2 whole/rounds.csv >begun/rounds.csv
edgewise federate lenet5 --data $data $quick --rounds 1 -o begun >/dev/null 2>&1 && wc -l <begun/rounds.csv
# A network from a file, or a trained one by name: as `train` opens it, with the normalisation of its weights.
edgewise data make --kind digits --train 200 --test 100 --seed 5 --to digits >/dev/null 2>&1
edgewise federate lenet5-mnist --data digits --clients 2 --share 1 --local-epochs 1 --lr 1e-9 --rounds 1 --threads 1 -o named 2>/dev/null | awk '{ print ($4 > 0.7 ? "trained" : "accuracy " $4) }'
edgewise export lenet5 --classes 3 -o three.onnx >/dev/null 2>&1
edgewise federate three.onnx --data digits --clients 2 --rounds 1 --threads 1 2>&1 >/dev/null | grep reinitialised
edgewise federate named/last.ckpt --data digits --clients 2 --share 1 --local-epochs 1 --lr 1e-9 --rounds 1 --threads 1 2>/dev/null | awk '{ print ($4 > 0.7 ? "trained" : "accuracy " $4) }'
# Clients of equal size.
edgewise federate lenet5 --data synthetic:train=80,test=20 --clients 4 --rounds 1 --batch 8 -o even 2>&1 >/dev/null | grep -o 'clients of .* samples'
# No client answers.
edgewise federate lenet5 --data synthetic:train=80,test=20 --clients 4 --rounds 1 --batch 8 --drop 1 2>/dev/null | grep -o 'loss - *0 of.*answered'
