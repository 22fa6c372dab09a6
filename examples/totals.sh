#!/bin/sh
# Adds up the orders of one day and enters the sum in a ledger.
#
#   totals.sh DAY ORDERS TOTALS    reads ORDERS/DAY.csv, appends to TOTALS/ledger.txt
#
# A script as there are many: run twice for a day, it enters that day twice.
set -eu
day=$1
orders=$2
totals=$3
sum=$(awk -F, 'NR > 1 { sum += $2 } END { print sum + 0 }' "$orders/$day.csv")
echo "$day $sum" >>"$totals/ledger.txt"
