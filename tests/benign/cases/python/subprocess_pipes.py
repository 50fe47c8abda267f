# subprocess: input, output, both streams, timeout, exit codes, chains.
import subprocess
import sys

done = subprocess.run(["tr", "a-z", "A-Z"], input=b"shout\n", stdout=subprocess.PIPE)
print(done.returncode, done.stdout)
done = subprocess.run("echo out; echo err >&2; exit 4", shell=True, capture_output=True, text=True)
print(done.returncode, repr(done.stdout), repr(done.stderr))
try:
    subprocess.run(["sleep", "30"], timeout=0.05)
except subprocess.TimeoutExpired as error:
    print("timeout of", error.cmd)
try:
    subprocess.run(["false"], check=True)
except subprocess.CalledProcessError as error:
    print(error)
try:
    subprocess.run(["no-such-program"])
except FileNotFoundError as error:
    print(error.strerror, error.filename)
first = subprocess.Popen(["printf", "%s\n", "pear", "apple", "fig"], stdout=subprocess.PIPE)
second = subprocess.Popen(["sort"], stdin=first.stdout, stdout=subprocess.PIPE)
first.stdout.close()
print(second.communicate()[0].split(), first.wait(), second.returncode)
code = "import sys; print(sys.stdin.read()[::-1]); sys.exit(9)"
child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
print(child.communicate("desrever")[0].strip(), child.returncode)
sys.stdout.flush()
subprocess.call(["echo", "inherited stdout"])
killed = subprocess.Popen(["sleep", "30"], start_new_session=True)
killed.terminate()
print(killed.wait())
