# A disk that fills up under a store: the error says so, existing data is not lost, and with free space it continues.
mkdir disk
mount -t tmpfs -o size=300k tmpfs disk 2>/dev/null || { echo "no tmpfs can be mounted here" >&2; exit 77; }
trap 'umount disk' EXIT
edgewise bench lenet5 --iters 1 --warmup 0 --db disk/a.db >/dev/null
dd if=/dev/zero of=disk/rest bs=1k count=300 2>/dev/null || true
edgewise bench lenet5 --iters 1 --warmup 0 --db disk/a.db 2>&1 >/dev/null || echo "exit $?"
printf '[a]\ncommand = bench\nnetwork = lenet5\n' >s.study
rm disk/rest
edgewise study s.study --db disk/a.db 2>&1 || echo "exit $?"
edgewise results --db disk/a.db --columns id,status
mount -o remount,size=2m disk
edgewise bench lenet5 --iters 1 --warmup 0 --db disk/a.db >/dev/null
edgewise results --db disk/a.db --columns id --where "status = 'done'"
edgewise results export whole.db --db disk/a.db >/dev/null
# What is stored can be read on a full disk, as on read-only media.
umount disk
mount -t tmpfs -o size=300k tmpfs disk
cp whole.db disk/a.db
dd if=/dev/zero of=disk/rest bs=1k count=300 2>/dev/null || true
edgewise results --db disk/a.db --columns id
edgewise report --db disk/a.db >/dev/null && echo "a report"
edgewise reproduce --db disk/a.db >/dev/null && echo "a status"
edgewise results import whole.db --db disk/a.db 2>&1 || echo "exit $?"
# An export is complete in its one file, or fails.
for size in 100 140 180 220 260 300 340 380; do
    umount disk
    mount -t tmpfs -o size=${size}k tmpfs disk
    edgewise results export disk/b.db --db whole.db >/dev/null 2>&1 || continue
    cp disk/b.db alone.db
    edgewise results --db alone.db --columns id --csv | cmp - <(edgewise results --db whole.db --columns id --csv) && rm alone.db && echo exported
done | sort -u
