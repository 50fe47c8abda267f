# shellcheck shell=bash
# bash completion for vial(1)

_vial_languages() {
	vial languages 2>/dev/null | cut -f 1
}

_vial_environments() {
	vial env list 2>/dev/null | cut -f 1
}

_vial_settings() {
	vial config show 2>/dev/null | sed -n 's/^server\.\([a-z_]*\)\t.*/\1/p'
}

_vial_past() {
	vial history 2>/dev/null | cut -f 1
}

_vial_runs() {
	vial ps 2>/dev/null | cut -f 1
}

# Whether a word of `vial run` before the cursor already named the program: what follows is its own.
_vial_past_program() {
	local i
	for ((i = 2; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		=) ((i++)) ;;
		--json | --explain | --read-only | --daemon | --no-daemon | --help | -h) ;;
		--* | -[lEcetm]) [[ ${COMP_WORDS[i + 1]-} == = ]] || ((i++)) ;;
		-) return 0 ;;
		-*) ;;
		*) return 0 ;;
		esac
	done
	return 1
}

_vial_env() {
	local cur=$1 prev=$2
	local build='--image --tag --preload --language --locked --find-links --no-index --source --force --config --help'

	if ((COMP_CWORD == 2)); then
		mapfile -t COMPREPLY < <(compgen -W 'list build show remove --help' -- "$cur")
		return
	fi
	case ${COMP_WORDS[2]}:$prev in
	*:--config) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	build:--image) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	build:--find-links) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
	build:--language) mapfile -t COMPREPLY < <(compgen -W "$(_vial_languages)" -- "$cur") ;;
	build:--preload) ;;
	build:*)
		if [[ $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$build" -- "$cur")
		else
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		fi
		;;
	list:*) mapfile -t COMPREPLY < <(compgen -W '--json --config --help' -- "$cur") ;;
	show:*) mapfile -t COMPREPLY < <(compgen -W "--json --config --help $(_vial_environments)" -- "$cur") ;;
	remove:*) mapfile -t COMPREPLY < <(compgen -W "--config --help $(_vial_environments)" -- "$cur") ;;
	esac
}

_vial_config() {
	local cur=$1 prev=$2

	if ((COMP_CWORD == 2)); then
		mapfile -t COMPREPLY < <(compgen -W 'check show --help' -- "$cur")
		return
	fi
	case ${COMP_WORDS[2]}:$prev in
	check:* | show:--config) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	show:*) mapfile -t COMPREPLY < <(compgen -W '--json --config --help' -- "$cur") ;;
	esac
}

_vial_tokens() {
	vial token list 2>/dev/null | cut -f 1
}

_vial_token() {
	local cur=$1 prev=$2

	if ((COMP_CWORD == 2)); then
		mapfile -t COMPREPLY < <(compgen -W 'create list revoke --help' -- "$cur")
		return
	fi
	case ${COMP_WORDS[2]}:$prev in
	*:--config) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	create:--scopes) mapfile -t COMPREPLY < <(compgen -W 'run sessions files history metrics admin' -- "$cur") ;;
	create:--quota) mapfile -t COMPREPLY < <(compgen -S = -W 'runs queue sessions storage cpu window rate burst weight' -- "$cur") ;;
	*:--tenant | create:--expires | create:--note) ;;
	create:*) mapfile -t COMPREPLY < <(compgen -W '--tenant --scopes --expires --quota --note --json --config --help' -- "$cur") ;;
	list:*) mapfile -t COMPREPLY < <(compgen -W '--tenant --json --config --help' -- "$cur") ;;
	revoke:*) mapfile -t COMPREPLY < <(compgen -W "--tenant --config --help $(_vial_tokens)" -- "$cur") ;;
	esac
}

_vial_sessions() {
	vial session list 2>/dev/null | cut -f 1
}

_vial_open() { # what a session is opened with
	local cur=$1 prev=$2

	case $prev in
	-l | --language) mapfile -t COMPREPLY < <(compgen -W 'python javascript ruby bash' -- "$cur") ;;
	-E | --environment) mapfile -t COMPREPLY < <(compgen -W "$(_vial_environments)" -- "$cur") ;;
	*) mapfile -t COMPREPLY < <(compgen -W '--language --environment --allow-host --rewind --undo --help' -- "$cur") ;;
	esac
}

_vial_session() {
	local cur=$1 prev=$2

	if ((COMP_CWORD == 2)); then
		mapfile -t COMPREPLY < <(compgen -W 'open list run put get ls rm attach undo fork checkpoint checkpoints restore forget reset close --help' -- "$cur")
		return
	fi
	case ${COMP_WORDS[2]}:$prev in
	open:*) _vial_open "$cur" "$prev" ;;
	list:*) mapfile -t COMPREPLY < <(compgen -W '--json --help' -- "$cur") ;;
	run:--mode) mapfile -t COMPREPLY < <(compgen -W 'cell script function' -- "$cur") ;;
	run:-c | run:--code | run:-t | run:--timeout) ;;
	run:*) mapfile -t COMPREPLY < <(compgen -W "--code --mode --timeout --quiet --help $(_vial_sessions)" -- "$cur") ;;
	put:* | get:*)
		mapfile -t COMPREPLY < <(compgen -W "--help $(_vial_sessions)" -- "$cur")
		((COMP_CWORD > 3)) && mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		;;
	ls:*) mapfile -t COMPREPLY < <(compgen -W "--recursive --json --help $(_vial_sessions)" -- "$cur") ;;
	rm:*) mapfile -t COMPREPLY < <(compgen -W "--recursive --help $(_vial_sessions)" -- "$cur") ;;
	undo:*) mapfile -t COMPREPLY < <(compgen -W "--steps --help $(_vial_sessions)" -- "$cur") ;;
	fork:*) mapfile -t COMPREPLY < <(compgen -W "--count --deterministic --help $(_vial_sessions)" -- "$cur") ;;
	checkpoints:*) mapfile -t COMPREPLY < <(compgen -W "--json --help $(_vial_sessions)" -- "$cur") ;;
	attach:* | checkpoint:* | restore:* | forget:* | reset:* | close:*) mapfile -t COMPREPLY < <(compgen -W "--help $(_vial_sessions)" -- "$cur") ;;
	esac
}

_vial() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]-}
	local run='--language --environment --code --stdin --env --file --dir --workdir --read-only --export
		--export-to --network --allow-host --allow-weak --config --json --explain --timeout --cpu-time --cpus
		--memory --processes --open-files --file-size --workspace --tmp --files --output --daemon
		--no-daemon --help'
	local verbs='run judge languages doctor prepare env config serve token ps top history logs kill session repl help'
	local judge='--language --environment --compare --tolerance --parallel --stop --timeout --memory --json --help'
	local layers='namespaces root uid cgroup creds seccomp landlock proc'

	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W "$verbs --help --version" -- "$cur")
		return
	fi
	case $verb in
	run)
		case $prev in
		-l | --language) mapfile -t COMPREPLY < <(compgen -W "$(_vial_languages)" -- "$cur") ;;
		-E | --environment) mapfile -t COMPREPLY < <(compgen -W "$(_vial_environments)" -- "$cur") ;;
		--network) mapfile -t COMPREPLY < <(compgen -W 'none host' -- "$cur") ;;
		--allow-weak) mapfile -t COMPREPLY < <(compgen -W "$layers" -- "$cur") ;;
		--export-to | --dir) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
		-e | --env) mapfile -t COMPREPLY < <(compgen -v -- "$cur") ;;
		-c | --code | -t | --timeout | -m | --memory | --cpu-time | --cpus | --processes | \
			--open-files | --file-size | --workspace | --tmp | --files | --output | \
			--workdir | --export) ;;
		*)
			if [[ $cur == -* ]] && ! _vial_past_program; then
				mapfile -t COMPREPLY < <(compgen -W "$run" -- "$cur")
			else
				mapfile -t COMPREPLY < <(compgen -f -- "$cur")
			fi
			;;
		esac
		;;
	judge)
		case $prev in
		-l | --language) mapfile -t COMPREPLY < <(compgen -W "$(_vial_languages)" -- "$cur") ;;
		-E | --environment) mapfile -t COMPREPLY < <(compgen -W "$(_vial_environments)" -- "$cur") ;;
		--compare) mapfile -t COMPREPLY < <(compgen -W 'trimmed exact tokens floats' -- "$cur") ;;
		--tolerance | -j | --parallel | -t | --timeout | -m | --memory) ;;
		*)
			if [[ $cur == -* ]]; then
				mapfile -t COMPREPLY < <(compgen -W "$judge" -- "$cur")
			else
				mapfile -t COMPREPLY < <(compgen -f -- "$cur")
			fi
			;;
		esac
		;;
	languages | doctor)
		case $prev in
		--config) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
		*) mapfile -t COMPREPLY < <(compgen -W '--json --config --help' -- "$cur") ;;
		esac
		;;
	env) _vial_env "$cur" "$prev" ;;
	config) _vial_config "$cur" "$prev" ;;
	prepare)
		case $prev in
		--config) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
		*) mapfile -t COMPREPLY < <(compgen -W "--config --help $(_vial_languages)" -- "$cur") ;;
		esac
		;;
	serve)
		case $prev in
		--config | --socket) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
		--set) mapfile -t COMPREPLY < <(compgen -S = -W "$(_vial_settings)" -- "$cur") ;;
		--allow-weak) mapfile -t COMPREPLY < <(compgen -W "$layers" -- "$cur") ;;
		--log-format) mapfile -t COMPREPLY < <(compgen -W 'text json' -- "$cur") ;;
		--log-level) mapfile -t COMPREPLY < <(compgen -W 'error warn info debug' -- "$cur") ;;
		--backend) mapfile -t COMPREPLY < <(compgen -W 'local null docker kubernetes' -- "$cur") ;;
		--listen | --armed | --max | --queue | --renew-runs | --renew-time) ;;
		*) mapfile -t COMPREPLY < <(compgen -W '--socket --listen --backend --armed --max --queue --renew-runs --renew-time --allow-weak --log-format --log-level --set --config --help' -- "$cur") ;;
		esac
		;;
	top)
		case $prev in
		--interval | -i) ;;
		*) mapfile -t COMPREPLY < <(compgen -W '--once --json --interval --help' -- "$cur") ;;
		esac
		;;
	ps) mapfile -t COMPREPLY < <(compgen -W '--json --help' -- "$cur") ;;
	history)
		mapfile -t COMPREPLY < <(compgen -W "--failed --tenant --session --environment --kind --since --until --grep --number --json --help $(_vial_past)" -- "$cur") ;;
	logs) mapfile -t COMPREPLY < <(compgen -W "--follow --number --help $(_vial_past)" -- "$cur") ;;
	kill) mapfile -t COMPREPLY < <(compgen -W "--all --help $(_vial_runs)" -- "$cur") ;;
	token) _vial_token "$cur" "$prev" ;;
	session) _vial_session "$cur" "$prev" ;;
	repl) _vial_open "$cur" "$prev" ;;
	help) mapfile -t COMPREPLY < <(compgen -W "${verbs% help}" -- "$cur") ;;
	esac
}

complete -o filenames -o bashdefault -F _vial vial
