# Traps and children in the plain shell.
trap 'echo "got USR1"' USR1
kill -USR1 $$
sleep 30 & kill $!; wait $!; echo "child $?"
sh -c 'exit 200'; echo "status $?"
(trap 'echo inner' EXIT); echo outer
trap 'echo leaving; exit 5' TERM
kill -TERM $$
