# /dev/fd: process substitution, descriptors by number, coprocesses.
cat <(echo first) <(echo second)
while read -r line; do echo "got $line"; done < <(printf '%s\n' a b)
tee >(wc -l > lines) >(tr a-z A-Z > upper) < <(printf 'x\ny\n') > /dev/null
while [ ! -s lines ] || [ "$(wc -l < upper)" -lt 2 ]; do sleep 0.01; done
cat lines upper
exec 3> log 4< <(seq 3)
echo "to three" >&3
read -r -u 4 number; echo "from four $number"
exec 3>&- 4<&-
cat log
{ echo out; echo err >&2; } 2> errors | cat; cat errors
{ echo swapped >&2; } 3>&1 1>&2 2>&3 | tr a-z A-Z
coproc CALC { while read -r expression; do echo $((expression)); done; }
echo "6*7" >&"${CALC[1]}"; read -r answer <&"${CALC[0]}"; echo "$answer"
echo "2**16" >&"${CALC[1]}"; read -r answer <&"${CALC[0]}"; echo "$answer"
echo via name > /dev/stdout; echo to stderr > /dev/stderr
cat /dev/fd/5 5<<< "here string by number"
[ -e /dev/null ] && [ -c /dev/zero ] && [ ! -t 0 ] && echo devices
exec 6<> both; echo "read and write" >&6; cat both
(exec > redirected; echo inside); cat redirected
