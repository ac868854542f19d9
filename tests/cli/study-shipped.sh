# Every included protocol can be read in both sizes, and has published figures to compare with.
edgewise study list | awk '{ print $1 }' >names
while read -r name; do
    full=$(edgewise study "$name" --dry-run --json | grep -c '"job"')
    quick=$(edgewise study "$name" --quick --dry-run --json | grep -c '"job"')
    figures=$(edgewise study "$name" --print | grep -cE '^(figure|rows)')
    [ "$quick" -gt 0 ] && [ "$full" -gt 0 ] && [ "$figures" -gt 0 ] || echo "$name: $quick $full $figures"
    edgewise study "$name" --print | grep -q '^differs' || echo "$name does not say what differs"
    echo "$name"
done <names
