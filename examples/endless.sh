#!/bin/sh
# Never ends by itself, and hides a second process that does not either.
(while :; do :; done) &
echo "two loops are running"
while :; do :; done
