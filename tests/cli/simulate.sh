# Simulated boards: bench, train and study by a board's model, marked as simulated, and errors.
# once: numbers of many boards; advise/simulate runs the code.
edgewise bench resnet50 --simulate jetson-nano | sed 's/[0-9]*\.[0-9]*/N/g'
edgewise bench resnet50 --simulate agx-xavier:2/2100/900/1600 --json | grep -c '"quality": "simulated"'
edgewise bench mobilenet_v2 --simulate rpi4 --db s.db >/dev/null
edgewise train lenet5 --data synthetic --batch 16 --workers 1 --epochs 2 --dry --simulate agx-xavier:g --db s.db | sed 's/[0-9]*\.[0-9]*/N/g' | head -2
edgewise results --db s.db --where "quality = 'simulated'" | wc -l
# A known data set need not be installed: its counts are enough.
XDG_CACHE_HOME=$PWD/none edgewise train mobilenet_v3_large --data gld23k --input 224x224x3 --batch 16 --epochs 1 --simulate agx-xavier --db g.db >/dev/null
edgewise results --db g.db --columns dataset,status | tail -n 1 | tr -s ' '
XDG_CACHE_HOME=$PWD/none edgewise train lenet5 --data nosuch --simulate agx-xavier 2>&1 | head -1 | sed 's, in /.*, in CACHE,'
# The first epoch reads from the medium; repetitions have their own noise; modes whose clocks follow the load are left
# out.
for medium in hdd ssd; do
    edgewise train lenet5 --data synthetic --batch 16 --epochs 2 --storage $medium --simulate agx-xavier --db m.db >/dev/null
done
edgewise results --db m.db --columns storage,stall_s_first | tail -n +2 | sort -g -k 2 | cut -d ' ' -f 1
printf '[study]\ntitle = r\nrepeat = 3\n[lenet]\ncommand = train\nnetwork = lenet5\ndata = synthetic\nbatch = 16\nepochs = 2\ndvfs = on off\n' >r.study
edgewise study r.study --simulate agx-xavier --db r.db >/dev/null 2>&1
edgewise results --db r.db --columns epoch_s | tail -n +2 | sort -u | wc -l
cat >modes.study <<X
[study]
title = modes
[lenet]
command = train
network = lenet5
data = synthetic
batch = 16
epochs = 3
workers = 1
power-mode = a c e g i
[idle]
command = monitor
seconds = 1
X
edgewise study modes.study --simulate agx-xavier --db s.db >/dev/null 2>&1
edgewise results --db s.db --where "label = 'lenet' and quality = 'simulated' and energy_j > 1 and noise is null" | wc -l
edgewise predict --from s.db --workload 'lenet5, train, batch 16, workers 1' --modes 8/1200/900/1600 --html p.html 2>/dev/null | sed 's/[0-9]*\.[0-9]*/N/g' | head -3
grep -c 'id="calibration-2"' p.html
edgewise report --db s.db --carbon 360 | head -n 6 | sed -n 's/[0-9.]* J, [0-9.]* g/N J, N g/p'
edgewise report --compare s.db 2>&1 | head -1
edgewise recommend --from s.db --workload 'lenet5, train, batch 16, workers 1' --goal energy --limit power=8W 2>/dev/null | grep -c '^use'
sed 's/power-mode *= a c e g i/modes = advise 4/; s/title = modes/title = advised/' modes.study >advised.study
edgewise study advised.study --simulate agx-orin --db a.db >/dev/null 2>&1
edgewise results --db a.db --where "quality = 'simulated'" | cut -d ' ' -f 2- | grep -c /
edgewise study advised.study --simulate rpi5 --db r.db >/dev/null 2>&1 # has no GPU clock
edgewise results --db r.db | grep -c '/-/'
sed 's/advise 4/advise 9/' advised.study >longer.study
edgewise study longer.study --simulate agx-orin --db c.db --until time=60%,power=60% 2>&1 >/dev/null | sed 's/[0-9]*\.[0-9]*/N/g' | grep enough
edgewise results --db c.db --where "quality = 'simulated'" | grep -c /
edgewise study longer.study --simulate agx-orin --until time=0% 2>&1 | head -1
edgewise study modes.study --simulate agx-orin --until time=5% 2>&1 | head -1
edgewise study advised.study --db b.db 2>&1 >/dev/null | tail -1
edgewise report --db a.db --goal energy --limit power=60W | head -1
edgewise report --db a.db --goal speed 2>&1 | head -1
edgewise recommend --among boards --network mobilenet_v2 --goal latency --limit cost=100 --limit power=20W | grep '^use'
edgewise recommend --among rpi5,nope --network mobilenet_v2 2>&1 || echo "exit $?"
edgewise recommend --among boards 2>&1 | head -1
edgewise predict --network mobilenet_v2 --board jetson-nano | head -1
edgewise predict --network mobilenet_v2 2>&1 || echo "exit $?"
edgewise predict --plan --board agx-orin --until time=5 2>&1 || echo "exit $?"
edgewise bench resnet18 --simulate nothing 2>&1 || echo "exit $?"
edgewise bench resnet18 --simulate agx-xavier:zz 2>&1 || echo "exit $?"
edgewise bench resnet18 --simulate agx-xavier:8/9000/1377/2133 2>&1 || echo "exit $?"
edgewise bench resnet18 --simulate zcu104 2>&1 || echo "exit $?"
edgewise bench resnet18 --simulate jetson-nano --profile 2>&1 | head -1
