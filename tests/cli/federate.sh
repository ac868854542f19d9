# Federated learning: rounds, a run that is taken up again with the same end, and what is refused.
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
edgewise federate lenet5 --data $data $quick --rounds 1 -o whole || true
edgewise federate --resume whole --lr 1 || true
edgewise federate lenet5 --data $data $quick --method scaffold --momentum 0.9 || true
edgewise federate lenet5 --data $data --clients 500 || true
edgewise federate lenet5 --data $data --deadline 5 || true
edgewise federate lenet5 || true
