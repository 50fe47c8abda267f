# Functions, locals, recursion, return values, getopts, eval, indirect names.
factorial() { (($1 <= 1)) && echo 1 || echo $(($1 * $(factorial $(($1 - 1))))); }
hanoi() { (($1 == 0)) && return; hanoi $(($1 - 1)) "$2" "$4" "$3"; ((moves++)); hanoi $(($1 - 1)) "$4" "$3" "$2"; }
scope() { local x=inner; nested; echo "scope $x"; }
nested() { x=changed; }
options() {
	local OPTIND opt verbose=0 output=
	while getopts ':vo:' opt; do
		case $opt in
		v) ((verbose++)) ;;
		o) output=$OPTARG ;;
		:) echo "-$OPTARG wants a value" ;;
		?) echo "unknown -$OPTARG" ;;
		esac
	done
	shift $((OPTIND - 1))
	echo "verbose=$verbose output=$output rest=$*"
}
factorial 12
moves=0; hanoi 7 a b c; echo "$moves"
x=outer; scope; echo "$x"
options -vv -o file rest of it
options -x -o
variable=target; target=pointed; echo "${!variable}"
eval "made_$variable=by_eval"; echo "$made_target"
even() { (($1 % 2 == 0)); }
for n in 1 2 3 4; do even $n && continue; echo -n "$n odd "; done; echo
until ((n-- == 0)); do :; done; echo "$n"
select_word() { printf -v "$1" '%s' "${@: -1}"; }
select_word last a b c; echo "$last"
declare -f nested
type -t factorial; command -v cd; declare -i number=3*4; echo $number
readonly constant=1; (constant=2) 2> /dev/null || echo "readonly"
echo "$FUNCNAME" "${#BASH_SOURCE[@]}" "$((BASH_VERSINFO[0] >= 4))"
