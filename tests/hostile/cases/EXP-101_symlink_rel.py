# hostile-test
# id: EXP-101
# title: relative links, loops and links by way of /proc in the workspace
# class: export-link
# lang: python
# expect: ok
# severity: high
# checks: {"export": {"never_contains": "root:|HOSTILE-CANARY-|PATH=", "never_follow": true, "max_ms": 3000}, "next_run_ok": true}
# bounds: links only
# why: names that lead out part by part
import sys
_e = []
def esc(m): _e.append(str(m))
def done(why="refused"):
    sys.stdout.write(("ESCAPED: " + " | ".join(_e)[:1800] if _e else "CONTAINED: " + why) + "\n")
    sys.stdout.flush()
import os
os.makedirs("a/b/c",exist_ok=True)
T={"rel1":"../"*40+"etc/shadow","rel2":"../../../../proc/1/environ","a/b/c/rel3":"../"*30+"root/.ssh/id_rsa","d1":"../"*20+"etc","d2":"/proc/self/root/etc","self":"self","l1":"l2","l2":"l1","fd":"/proc/self/fd/0","cwd":"/proc/self/cwd/../../etc/shadow","pid1":"/proc/1/root/etc/passwd","dev":"/dev/zero","dot":".","up":"..","long":"x/"*2000+"y", "out.csv":"../"*20+"etc/passwd","a/etc":"../d1"}
for k,v in T.items():
    try: os.symlink(v,k)
    except OSError as e: print(k,e)
print("DONE: links")
