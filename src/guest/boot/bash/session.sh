# session - a Bash that lives on between steps (docs/SESSION-PROTOCOL.md).
#
# A step is evaluated by step.sh, sourced here at the top level: nothing is local, and `return` and
# SIGINT have somewhere to go back to.  What a step leaves (variables, functions, options,
# directory, traps, jobs, its status) is there for the next one, with these exceptions:
#
# - Descriptors 0 to 2 are the session's own at each beginning: `exec >file` lasts as long as its
#   step.
# - SIGINT ends the step with status 130; a trap for it lasts as long as its step.  Bash looks at it
#   when the command in the foreground has ended, which must get it, too: it is for the process
#   group.
# - `set -e` ends the step and not the session, unless there is a trap of the program's for ERR.
# - `exit`, and what makes any shell exit (`set -u`, ${x:?}), ends the session.  That is not said
#   here, but by the exit status: Bash does not know in its last moments which signal it dies of.
#
# Names that begin with __vial are ours.  The channel is closed in every command that is executed; a
# subshell that executes none holds it: Bash has no means against that.

# ---- descriptors -----------------------------------------------------------------------------

# Bash has no word for close-on-exec, but sets it where it puts a descriptor aside, and what it
# copies has it from there.
__vial_hide() { # DESCRIPTOR AS
  local aside=10
  while [[ -e /dev/fd/$aside ]]; do ((aside++)); done
  exec 200<&"$1"
  { eval "exec $2<&$aside"; } 200<&-
  exec 200<&-
}

# ---- messages --------------------------------------------------------------------------------

# A word of a message.  A signal does not cost what has been read of it.
__vial_read() {
  local part code
  REPLY=
  until IFS= builtin read -r -d '' -u 250 part; do
    code=$?
    REPLY+=$part
    ((code > 128)) || { builtin trap - EXIT; builtin exit 0; } # the server has gone
  done
  REPLY+=$part
}

__vial_say() { # MEMBERS
  builtin printf '{"op": "result", "id": %d, %s}\n' "$__vial_id" "$1" >&250
  __vial_id=
}

# ---- traps -----------------------------------------------------------------------------------

# As Ctrl-C: what runs returns at once, and then what called it, each before its next command.
__vial_on_int='if [[ $__vial_busy ]]; then
  __vial_interrupted=1
  builtin trap "((\${#BASH_SOURCE[@]} > 1)) && builtin return 130" DEBUG
  ((${#BASH_SOURCE[@]} > 1)) && builtin return 130
fi'

# Comes before `set -e` ends the shell; where the step itself has returned, that is enough.  Without
# [[, which Bash cannot read when the step has ended in the middle of one.
__vial_on_err='case $-:$BASHPID in *e*:"$__vial_self")
  ((${#BASH_SOURCE[@]} > 1)) && builtin return
  __vial_flags=$-
  builtin set +e
esac'

__vial_on_exit='__vial_status=$?
if [[ $__vial_id && $BASHPID == "$__vial_self" ]]; then
  builtin set +eu
  __vial_last; builtin eval "$__vial_exit"
fi'

# What the program has trapped, in REPLY; nothing if that is ours.
__vial_trapped() { # SIGNAL OURS
  local -a words
  builtin eval "words=($(builtin trap -p "$1"))"
  REPLY=${words[2]}
  [[ $REPLY != "$2" ]] || REPLY=
}

__vial_take_traps() {
  __vial_trapped EXIT "$__vial_on_exit"
  [[ ! $REPLY ]] || __vial_exit=$REPLY
  __vial_trapped ERR "$__vial_on_err"
  __vial_err=$REPLY
}

# ---- steps -----------------------------------------------------------------------------------

# What $? is when a step begins.  In step.sh it stands before an ||, where a trap for ERR is not told.
__vial_last() { builtin return "$__vial_status"; }

__vial_begin() { # ID CODE
  exec 0<&251 1>&252 2>&253
  builtin trap "$__vial_on_int" INT
  builtin trap "$__vial_on_exit" EXIT
  builtin trap "${__vial_err:-$__vial_on_err}" ERR
  __vial_id=$1 __vial_code=$2 __vial_flags= __vial_interrupted=
  [[ ! $__vial_debug ]] || __vial_code="$__vial_debug; $2"
  [[ ! $__vial_options ]] || __vial_code="set -$__vial_options; $__vial_code"
}

__vial_end() {
  [[ $__vial_code != *trap* ]] || __vial_take_traps
  builtin unset -f exec # `builtin exec` would redirect nothing
  builtin enable builtin enable eval exec exit printf read return set source trap unset
  local said="\"status\": $__vial_status"
  [[ ! $__vial_interrupted ]] || said='"status": 130, "interrupted": true'
  if [[ $__vial_rewinds ]]; then
    __vial_rewind done __vial_why
    [[ ! $__vial_why ]] || said+=", \"rewind\": \"$__vial_why\""
  fi
  __vial_say "$said"
  [[ ! $__vial_rewinds ]] || __vial_rewind trim
}

# ---- what can be gone back to ----------------------------------------------------------------

# Returns late in a copy that goes on as the session (src/guest/rewind).
__vial_order() { # OP ID [ARGUMENT...]
  if [[ $1 == rewind ]]; then
    builtin enable -f "${__vial_step%/*}/rewind.so" __vial_rewind || builtin return
    __vial_rewinds=1
    __vial_rewind start 250 "$3" "$4"
  elif [[ $1 == forked ]]; then # a branch; what the others draw is not its own
    [[ ! $__vial_rewinds ]] || __vial_rewind restart
    [[ $3 == 0 ]] || RANDOM=$SRANDOM
  elif [[ $__vial_rewinds ]]; then
    __vial_rewind order "$1" "$2" "$3"
  fi
  __vial_self=$BASHPID
}

__vial_hide "$VIAL_SESSION_FD" 250
__vial_hide 0 251
__vial_hide 1 252
__vial_hide 2 253
eval "exec $VIAL_SESSION_FD<&-"
unset VIAL_SESSION_FD
__vial_step=${BASH_SOURCE%/*}/step.sh
__vial_id='' __vial_status=0 __vial_busy='' __vial_options=''
__vial_exit='' __vial_err='' __vial_debug='' __vial_rewinds='' __vial_why='' __vial_self=$BASHPID
BASH_ARGV0=bash
set -E # functions and subshells have the trap for ERR, too
builtin trap "$__vial_on_int" INT
builtin printf '{"op": "ready"}\n' >&250

# One step after the other.  The last one is settled where the next one is asked for, which is where
# a `continue` for which it has no loop leads to; a `break` of that kind ends this loop, and it
# begins again outside of it.  It ends when `set -n` or a function named `builtin` keeps it from
# doing its work.
__vial_serve='until
  { # what traces or traps each command is not to show ours
    __vial_status=$?
    ((__vial_status != 2)) || builtin eval ")" || : # or it would go on reading the [[ of a mistake
    if [[ $__vial_busy ]]; then
      __vial_busy=
      __vial_options=${__vial_flags:-$-}
      __vial_options=${__vial_options//[^aefuvx]/}
      builtin set +aefuvx
      [[ ! $__vial_interrupted ]] || builtin trap - DEBUG
      if [[ $__vial_code == *trap* ]]; then # not in a function, which would have one of its own
        __vial_debug=$(builtin trap -p DEBUG)
        builtin trap - DEBUG
      fi
      __vial_end
    fi
  } >/dev/null 2>&1
  __vial_read; __vial_new=$REPLY; __vial_read; [[ $__vial_new != *([a-z])?( )+([0-9])* ]]
do
  if [[ $__vial_new == [a-z]* ]]; then
    IFS=" " builtin read -r -a __vial_words <<<"$__vial_new"
    __vial_order "${__vial_words[@]}"
    continue
  elif [[ $__vial_rewinds ]] && ! __vial_rewind begin "$__vial_new"; then
    __vial_self=$BASHPID # the step has been, and is no more
    continue
  fi
  __vial_begin "$__vial_new" "$REPLY"
  __vial_busy=1
  builtin source "$__vial_step"
done
[[ ! $__vial_busy ]] || builtin eval ":; $__vial_serve"'
builtin eval "$__vial_serve"
exit 125
