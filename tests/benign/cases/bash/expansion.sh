# Parameter expansion, pattern matching, arithmetic, braces, quoting.
name=archive.tar.gz path=/usr/local/bin empty=
echo "${name%.gz} ${name%%.*} ${name#*.} ${name##*.} ${path##*/} ${#path}"
echo "${name/a/A} ${name//a/A} ${name^} ${name^^} ${path:5:5} ${path: -3}"
echo "${empty:-default} ${empty-set} ${unset_name-unset} ${name:+present}"
echo {a..e} {1..10..3} {x,y}{1,2} "{not,expanded}" ~+ | sed "s|$PWD|here|"
echo $((2 ** 10)) $((17 / 5)) $((17 % 5)) $((0xff)) $((2#1011)) $((1 << 20)) $(((3 > 2) ? 10 : 20))
x=5; ((x++, x *= 2)); echo $x $((x-- - --x)) $x
[[ $name == *.gz && $name =~ ^([a-z]+)\.(.+)$ ]] && echo "${BASH_REMATCH[1]} ${BASH_REMATCH[2]}"
shopt -s extglob nullglob
echo "${name//+([aeiou])/_}" no-such-*
case $name in *.zip) echo zip ;; *.tar.@(gz|xz)) echo tarball ;;& *) echo "and more" ;; esac
echo $'tab\there \u017e' "quoted \"inner\" \$name" 'single $name' "$(printf '%q' "a b'c")"
printf -v padded '%-10s|%05d|%.3f|%x|%c' left 42 3.14159 255 z; echo "$padded"
printf '%s=%s\n' a 1 b 2; printf '%(%Y)T\n' 0
echo "${name@Q} ${name@U}" "$((10#08 + 1))"
set -- one "two three" four; echo $# "$2" "${*:2}"; shift 2; echo "$1"
