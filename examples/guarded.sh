#!/bin/sh
# Three workers run totals.sh for twenty days in parallel, and each day is in the ledger once.
# totals.sh is unchanged: `penstock run` claims a day and passes the day and the locations of the
# data in the environment.
#
#   penstock serve &
#   examples/guarded.sh FOLDER     creates FOLDER with sample orders
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:?name a folder for the sample data}/orders" "$1/totals"
folder=$(cd "$1" && pwd)

for day in $(seq 20261101 20261120); do
    printf 'order,amount\na,%d\nb,%d\n' "$((day % 100))" 100 >"$folder/orders/$day.csv"
done

penstock jobs wire shop/totals --input orders --output totals
seq 20261101 20261120 | penstock lots register shop/orders -

for worker in 1 2 3; do
    penstock run shop/totals --loop --owner "worker $worker" \
        --location orders="$folder/orders" --location totals="$folder/totals" -- \
        sh -c 'exec "$0" "$PENSTOCK_LOT" "$PENSTOCK_INPUT_ORDERS" "$PENSTOCK_OUTPUT_TOTALS"' \
        "$here/totals.sh" &
    workers="${workers:-} $!"
done
for worker in $workers; do
    wait "$worker"
done

sort "$folder/totals/ledger.txt"
