#!/bin/sh
# Add up the orders of one day and append the sum to a ledger.
#
#   totals.sh DAY ORDERS TOTALS    reads ORDERS/DAY.csv, appends to TOTALS/ledger.txt
#
# A typical script without locks: if it runs twice for a day, the ledger has that day twice.
set -eu
day=$1
orders=$2
totals=$3
sum=$(awk -F, 'NR > 1 { sum += $2 } END { print sum + 0 }' "$orders/$day.csv")
echo "$day $sum" >>"$totals/ledger.txt"
