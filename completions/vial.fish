# fish completion for vial(1)

function __vial_languages
    vial languages 2>/dev/null | cut -f 1
end

function __vial_settings
    vial config show 2>/dev/null | string match -r '^server\\.[a-z_]+' | string replace server. '' | string replace -r '$' =
end

function __vial_past
    vial history 2>/dev/null | cut -f 1
end

function __vial_runs
    vial ps 2>/dev/null | cut -f 1
end

function __vial_environments
    vial env list 2>/dev/null | cut -f 1
end

function __vial_needs_verb
    test (count (commandline -opc)) -eq 1
end

function __vial_verb
    set -l words (commandline -opc)
    test (count $words) -ge 2; and contains -- $words[2] $argv
end

function __vial_session
    set -l words (commandline -opc)
    test (count $words) -ge 3; and test $words[2] = session; and contains -- $words[3] $argv
end

function __vial_token
    set -l words (commandline -opc)
    test (count $words) -ge 3; and test $words[2] = token; and contains -- $words[3] $argv
end

function __vial_tokens
    vial token list 2>/dev/null | cut -f 1
end

function __vial_sessions
    vial session list 2>/dev/null | cut -f 1
end

function __vial_env
    set -l words (commandline -opc)
    test (count $words) -ge 3; and test $words[2] = env; and contains -- $words[3] $argv
end

set -l layers namespaces root uid cgroup creds seccomp landlock proc

complete -c vial -n __vial_needs_verb -f -a run -d 'run a program in a fresh sandbox'
complete -c vial -n __vial_needs_verb -f -a judge -d 'a program against inputs and outputs'
complete -c vial -n __vial_needs_verb -f -a languages -d 'the languages this host can run'
complete -c vial -n __vial_needs_verb -f -a doctor -d 'what this host can enforce'
complete -c vial -n __vial_needs_verb -f -a prepare -d 'fill the build caches'
complete -c vial -n __vial_needs_verb -f -a env -d 'languages with packages of their own'
complete -c vial -n __vial_needs_verb -f -a config -d 'check the configuration, or show it'
complete -c vial -n __vial_needs_verb -f -a serve -d 'keep sandboxes ready for whoever asks'
complete -c vial -n __vial_needs_verb -f -a token -d 'who may use the daemon over the network'
complete -c vial -n __vial_needs_verb -f -a ps -d 'what the local daemon is running'
complete -c vial -n __vial_needs_verb -f -a top -d 'the local daemon at work'
complete -c vial -n __vial_needs_verb -f -a history -d 'what it ran, and what went wrong'
complete -c vial -n __vial_needs_verb -f -a logs -d 'what programs of it printed'
complete -c vial -n __vial_needs_verb -f -a kill -d 'end runs of the local daemon'
complete -c vial -n __vial_needs_verb -f -a session -d 'interpreters of the daemon that live on'
complete -c vial -n __vial_needs_verb -f -a repl -d 'talk to an interpreter in a sandbox'
complete -c vial -n __vial_needs_verb -f -a help -d 'explain a verb'
complete -c vial -n __vial_needs_verb -f -l version -s V -d 'show the version'
complete -c vial -f -l help -s h -d 'show the options'

complete -c vial -n '__vial_verb run judge' -x -l language -s l -a '(__vial_languages)' -d 'the language'
complete -c vial -n '__vial_verb run judge' -x -l environment -s E -a '(__vial_environments)' -d 'the environment'
complete -c vial -n '__vial_verb run' -x -l code -s c -d 'run this text instead of a file'
complete -c vial -n '__vial_verb run' -r -l stdin -d 'standard input of the program, - is our own'
complete -c vial -n '__vial_verb run' -x -l env -s e -a '(set -nx)' -d 'set a variable, or pass ours on'
complete -c vial -n '__vial_verb run' -r -l file -d 'copy a file into the workspace'
complete -c vial -n '__vial_verb run' -x -l dir -a '(__fish_complete_directories)' -d 'show a host directory inside'
complete -c vial -n '__vial_verb run' -x -l workdir -d 'where the workspace appears'
complete -c vial -n '__vial_verb run' -l read-only -d 'the program may not write in the workspace'
complete -c vial -n '__vial_verb run' -x -l export -d 'save matching files of the workspace afterwards'
complete -c vial -n '__vial_verb run' -x -l export-to -a '(__fish_complete_directories)' -d 'where to save them'
complete -c vial -n '__vial_verb run' -x -l network -a 'none host' -d 'the network inside'
complete -c vial -n '__vial_verb run' -x -l allow-host -a '(__fish_print_hostnames)' -d 'let it reach this host, by a proxy'
complete -c vial -n '__vial_verb run' -x -l allow-weak -a "$layers" -d 'run without these layers'
complete -c vial -n '__vial_verb run' -l explain -d 'show the plan and do not run'
complete -c vial -n '__vial_verb run' -l daemon -d 'run it in the local daemon, or not at all'
complete -c vial -n '__vial_verb run' -l no-daemon -d 'run it without the local daemon'
complete -c vial -n '__vial_verb run judge' -x -l timeout -s t -d 'elapsed time'
complete -c vial -n '__vial_verb run' -x -l cpu-time -d 'CPU time over all processes'
complete -c vial -n '__vial_verb run' -x -l cpus -d 'share of the CPU'
complete -c vial -n '__vial_verb run judge' -x -l memory -s m -d 'memory of all processes'
complete -c vial -n '__vial_verb run' -x -l processes -d 'processes and threads alive at once'
complete -c vial -n '__vial_verb run' -x -l open-files -d 'open descriptors per process'
complete -c vial -n '__vial_verb run' -x -l file-size -d 'size of any one file written'
complete -c vial -n '__vial_verb run' -x -l workspace -d 'bytes in the workspace'
complete -c vial -n '__vial_verb run' -x -l tmp -d 'bytes in /tmp'
complete -c vial -n '__vial_verb run' -x -l files -d 'files and directories'
complete -c vial -n '__vial_verb run' -x -l output -d 'bytes kept of stdout, and of stderr'

complete -c vial -n '__vial_verb judge' -x -l compare -a 'trimmed exact tokens floats' -d 'how outputs are compared'
complete -c vial -n '__vial_verb judge' -x -l tolerance -d 'by how much floats may differ'
complete -c vial -n '__vial_verb judge' -x -l parallel -s j -d 'how many cases at once'
complete -c vial -n '__vial_verb judge' -l stop -d 'stop at the first case that is not accepted'

complete -c vial -n '__vial_verb serve' -r -l socket -d 'the Unix socket'
complete -c vial -n '__vial_verb serve' -x -l listen -d 'listen there as well'
complete -c vial -n '__vial_verb serve' -x -l backend -a 'local null docker kubernetes' -d 'where programs run'
complete -c vial -n '__vial_verb serve' -x -l armed -d 'sandboxes kept ready, per environment'
complete -c vial -n '__vial_verb serve' -x -l max -d 'sandboxes at once'
complete -c vial -n '__vial_verb serve' -x -l queue -d 'runs that may wait'
complete -c vial -n '__vial_verb serve' -x -l renew-runs -d 'runs per warm interpreter'
complete -c vial -n '__vial_verb serve' -x -l renew-time -d 'time per warm interpreter'
complete -c vial -n '__vial_verb serve' -x -l allow-weak -a "$layers" -d 'start without these layers'
complete -c vial -n '__vial_verb serve' -x -l log-format -a 'text json' -d 'how events are written'
complete -c vial -n '__vial_verb serve' -x -l log-level -a 'error warn info debug' -d 'which events are written'
complete -c vial -n '__vial_verb serve' -x -l set -a '(__vial_settings)' -d 'any other setting, KEY=VALUE'
complete -c vial -n '__vial_verb history' -l failed -d 'only what did not exit with 0'
complete -c vial -n '__vial_verb history' -x -l session -s s -d 'the steps of a session'
complete -c vial -n '__vial_verb history' -x -l environment -s E -a '(__vial_environments)' -d 'what ran in it'
complete -c vial -n '__vial_verb history' -x -l tenant -d 'of whom'
complete -c vial -n '__vial_verb history' -x -l kind -a 'run step batch execute exec terminal' -d 'what kind'
complete -c vial -n '__vial_verb history' -x -l since -d 'what ended since'
complete -c vial -n '__vial_verb history' -x -l until -d 'what ended before'
complete -c vial -n '__vial_verb history' -x -l grep -s g -d 'what has this in it'
complete -c vial -n '__vial_verb history logs' -x -l number -s n -d 'how many'
complete -c vial -n '__vial_verb history logs' -f -a '(__vial_past)'
complete -c vial -n '__vial_verb logs' -l follow -s f -d 'go on with what ends from now on'
complete -c vial -n '__vial_verb kill' -l all -d 'every run there is'
complete -c vial -n '__vial_verb kill' -f -a '(__vial_runs)'

complete -c vial -n '__vial_verb top' -l once -d 'print one frame'
complete -c vial -n '__vial_verb top' -x -s i -l interval -d 'time between two frames'
complete -c vial -n '__vial_verb run judge languages doctor ps top history' -l json -d 'print JSON'
complete -c vial -n '__vial_verb run languages doctor prepare serve' -r -l config -d 'the configuration'
complete -c vial -n '__vial_verb prepare' -f -a '(__vial_languages)'
complete -c vial -n '__vial_verb help' -f -a 'run judge languages doctor prepare env config serve token ps top history logs kill session repl'

complete -c vial -n '__vial_verb config; and test (count (commandline -opc)) -eq 2' -f -a 'check show'
complete -c vial -n '__vial_verb config' -l json -d 'print JSON'
complete -c vial -n '__vial_verb config' -r -l config -d 'the configuration'
complete -c vial -n '__vial_verb env; and test (count (commandline -opc)) -eq 2' -f -a 'list build show remove'
complete -c vial -n '__vial_env list show' -l json -d 'print JSON'
complete -c vial -n '__vial_env list build show remove' -r -l config -d 'the configuration'
complete -c vial -n '__vial_env show remove' -f -a '(__vial_environments)'
complete -c vial -n '__vial_env build' -r -l image -d 'make it of a container image'
complete -c vial -n '__vial_env build' -x -l tag -d 'what that image is called'
complete -c vial -n '__vial_env build' -x -l preload -d 'what a warm interpreter has imported'
complete -c vial -n '__vial_env build' -x -l language -a '(__vial_languages)' -d 'the language'
complete -c vial -n '__vial_env build' -l locked -d 'exactly the versions of its lock'
complete -c vial -n '__vial_env build' -x -l find-links -a '(__fish_complete_directories)' -d 'look for wheels there, too'
complete -c vial -n '__vial_env build' -l no-index -d 'look there only, without a network'
complete -c vial -n '__vial_env build' -l source -d 'packages without a wheel may be built'
complete -c vial -n '__vial_env build' -l force -d 'even when it is there and the same'

complete -c vial -n '__vial_verb token; and test (count (commandline -opc)) -eq 2' -f -a 'create list revoke'
complete -c vial -n '__vial_token create list revoke' -x -l tenant -d 'on whose behalf'
complete -c vial -n '__vial_token create list revoke' -r -l config -d 'the configuration'
complete -c vial -n '__vial_token create list' -l json -d 'print JSON'
complete -c vial -n '__vial_token create' -x -l scopes -a 'run sessions files history metrics admin' -d 'what it is good for'
complete -c vial -n '__vial_token create' -x -l expires -d 'when it ends'
complete -c vial -n '__vial_token create' -x -l quota -d 'how much its tenant may have'
complete -c vial -n '__vial_token create' -x -l note -d 'what the list shows beside it'
complete -c vial -n '__vial_token revoke' -f -a '(__vial_tokens)'

complete -c vial -n '__vial_verb session; and test (count (commandline -opc)) -eq 2' -f -a 'open list run put get ls rm attach undo fork checkpoint checkpoints restore forget reset close'
complete -c vial -n '__vial_verb repl; or __vial_session open' -x -l language -s l -a 'python javascript ruby bash' -d 'the language'
complete -c vial -n '__vial_verb repl; or __vial_session open' -x -l environment -s E -a '(__vial_environments)' -d 'the environment'
complete -c vial -n '__vial_verb repl; or __vial_session open' -x -l allow-host -a '(__fish_print_hostnames)' -d 'let it reach this host, by a proxy'
complete -c vial -n '__vial_verb repl; or __vial_session open' -f -l rewind -d 'take back steps that end badly'
complete -c vial -n '__vial_verb repl; or __vial_session open' -x -l undo -d 'let so many good steps be taken back'
complete -c vial -n '__vial_session fork' -x -l count -s n -d 'so many branches'
complete -c vial -n '__vial_session fork' -l deterministic -d 'with the same random numbers'
complete -c vial -n '__vial_session undo' -x -l steps -s n -d 'so many steps'
complete -c vial -n '__vial_session list ls checkpoints' -l json -d 'print JSON'
complete -c vial -n '__vial_session ls' -l recursive -s R -d 'what is in its directories, too'
complete -c vial -n '__vial_session rm' -l recursive -s r -d 'directories with all that is in them'
complete -c vial -n '__vial_session put get' -a '(__vial_sessions)'
complete -c vial -n '__vial_session run' -x -l code -s c -d 'this code, instead of a file'
complete -c vial -n '__vial_session run' -x -l mode -a 'cell script function' -d 'how it is run'
complete -c vial -n '__vial_session run' -x -l timeout -s t -d 'interrupt it after so long'
complete -c vial -n '__vial_session run' -l quiet -s q -d 'show no value'
complete -c vial -n '__vial_session run ls rm attach undo fork checkpoint checkpoints restore forget reset close' -f -a '(__vial_sessions)'
