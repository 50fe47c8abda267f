# hostile-test
# id: STATE-101B
# title: packets and connections that the next network namespace should not count - look
# class: state-leak
# lang: python
# expect: contained
# severity: high
# part: B of STATE-101 (different users, sequential)
# bounds: reads only
# why: network namespaces that are made ahead or used again
import sys
_e = []
def esc(m): _e.append(str(m))
def done(why="refused"):
    sys.stdout.write(("ESCAPED: " + " | ".join(_e)[:1800] if _e else "CONTAINED: " + why) + "\n")
    sys.stdout.flush()
import glob
for l in open("/proc/net/dev").read().splitlines()[2:]:
    w=l.split()
    if w[0]=="lo:" and int(w[2])>0: esc(l)
for f in ("/proc/net/tcp","/proc/net/udp","/proc/net/sockstat","/proc/net/snmp","/proc/net/netstat"):
    try: t=open(f).read().splitlines()
    except OSError: continue
    if f.endswith(("tcp","udp")) and len(t)>1: esc(t[1])
    if f.endswith("snmp"): 
        for l in t: 
            if l.startswith("Udp:") and l.split()[1].isdigit() and int(l.split()[1]): esc(l)
            if l.startswith("Tcp:") and l.split()[1].isdigit() and int(l.split()[5]): esc(l)
done("fresh")
