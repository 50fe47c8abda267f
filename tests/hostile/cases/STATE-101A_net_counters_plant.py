# hostile-test
# id: STATE-101A
# title: packets and connections that the next network namespace should not count - plant
# class: state-leak
# lang: python
# expect: ok
# severity: high
# part: A of STATE-101 (different users, sequential)
# bounds: loopback only
# why: network namespaces that are made ahead or used again
import sys
_e = []
def esc(m): _e.append(str(m))
def done(why="refused"):
    sys.stdout.write(("ESCAPED: " + " | ".join(_e)[:1800] if _e else "CONTAINED: " + why) + "\n")
    sys.stdout.flush()
import socket
a=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); a.bind(("127.0.0.1",0))
for i in range(777): a.sendto(b"x"*100,a.getsockname())
l=socket.socket(); l.bind(("127.0.0.1",18996)); l.listen(5)
for i in range(30): c=socket.create_connection(("127.0.0.1",18996)); d,_=l.accept(); c.close(); d.close()
print("DONE: sent")
