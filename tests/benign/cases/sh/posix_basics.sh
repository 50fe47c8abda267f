# The POSIX shell: loops, tests, functions, arithmetic, quoting.
count=0
for word in one "two three" 'four' ; do count=$((count + 1)); echo "$count: $word"; done
i=5; while [ $i -gt 0 ]; do printf '%d ' $i; i=$((i - 1)); done; echo
greet() { echo "hello ${1:-nobody} of $#"; return 3; }
greet you there; echo "returned $?"; greet
case abc in a*) echo "starts with a" ;; *) echo other ;; esac
set -- a b c; echo "$# $1 $*"; shift; echo "$@"
x=value; echo "${x#v} ${x%e} ${#x} ${y:=assigned} $y"
if [ -d /usr ] && [ ! -e /nothing ]; then echo "tests"; fi
echo $((0x10 + 010 + 7 % 4)) $((1 > 2 || 3 == 3))
cat << END | tr a-z A-Z
shouted $x
END
(x=inner; echo $x); echo $x
command -v printf > /dev/null && echo found; type cd
eval 'echo evaluated $x'
printf '%s|%5.1f|%03d|%b\n' text 2.25 7 'tab\there'
