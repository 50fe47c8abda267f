# Half a megabyte from several processes, in order.
for part in 1 2 3 4 5; do seq -f "$part %g ----------------------------------------" 1 2000; done
seq 1 1000 >&2
echo done
