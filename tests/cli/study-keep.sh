# A study removes nothing that it has not created.  Regression: `keep = models` emptied an existing models/ before the
# job, `keep = ..` the folder above, and the second job of a sweep removed what the first had kept.
export EW_UNIT=test
head=$'[defaults]\ncommand = train\nnetwork = lenet5\ndata = synthetic:train=32,test=16\nbatch = 16\nepochs = 1\n[a]\n'
study() { printf '%s%s\n' "$head" "$2" >"$1.study"; shift; }
run() { edgewise study "$1.study" --busy 1 "${@:2}" >/dev/null 2>err.txt && echo "$1: ok" || { echo "$1: exit $?"; tail -n 1 err.txt; }; }

mkdir models && echo "three weeks of training" >models/precious.ckpt
study taken 'keep = models'
run taken
cat models/precious.ckpt

# Names that leave the folder: upward, absolute, through a link; with permission they are used, but never emptied.
mkdir -p inner/deep elsewhere && echo "not yours" >elsewhere/file && ln -s ../elsewhere inner/link
study up 'keep = ..'
study absolute "keep = $PWD/elsewhere/net"
study link 'keep = link/net'
study made "keep = $PWD/inner/new/net"
for s in up absolute link made; do mv $s.study inner; (cd inner && run $s); done
(cd inner && run absolute --allow-outside && run absolute --allow-outside && run up --allow-outside)
find elsewhere inner -name last.ckpt | sort
cat elsewhere/file

# Two jobs with one name; one name inside the other; and separate names.
study sweep $'batch = 8 16\nkeep = out/net'
study nested $'keep = out\n[b]\nbatch = 8\nkeep = ./out//net'
study apart $'batch = 8 16\nkeep = out/net-{batch}'
run sweep
run nested
run sweep --dry-run
run apart
find out -mindepth 1 -maxdepth 1 | sort

# Of repetitions the first is kept; a new store does not overwrite it.
study repeat 'keep = once/net'
run repeat --repeat 2
run repeat --repeat 2 --db other.db
find once runs -mindepth 1 -maxdepth 1

# Foreign files in folders that a study uses: of a setup, of the scratch folder.
printf '[study]\nsetup = made | data make --kind digits --train 8 --test 4 --to {}\n%snetwork = lenet5\n' "$head" >setup.study
mkdir .made.part && echo mine >.made.part/file
run setup
cat .made.part/file
rm -r .made.part
run setup
ls -A | grep made
