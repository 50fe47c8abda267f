import subprocess, sys
code = "import sys, os; print(sys.path, sys.argv, sorted(os.environ.items())); print('json' in sys.modules, sys.stdin.isatty()); sys.exit(3)"
print(subprocess.run([sys.executable, '-s', '-c', code, 'x'], stdin=subprocess.DEVNULL).returncode)
print(subprocess.run('ls -l /proc/self/fd | wc -l; cat', shell=True, input=b'in', capture_output=True))
