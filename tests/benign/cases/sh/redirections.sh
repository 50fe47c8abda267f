# Redirections, descriptors, pipes, subshells.
echo one > f; echo two >> f; cat < f
{ echo out; echo err >&2; } > both 2>&1; sort both
exec 3> third; echo "by three" >&3; exec 3>&-; cat third
ls /no/such/place 2> errors || echo "failed with $?"; wc -l < errors
echo piped | { read -r line; echo "got $line"; }
result=$(echo sub; exit 4); echo "$result $?"
: > empty; [ -s empty ] || echo "empty"
(cd /tmp && [ "$(pwd)" = /tmp ] && echo moved); set -C; (echo clobber > f) 2> /dev/null || echo "noclobber"
umask 077; : > private; ls -l private | cut -c1-10
wait; trap 'echo bye' EXIT; kill -0 $$ && echo alive
