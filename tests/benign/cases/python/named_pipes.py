# A fifo in the workspace between two processes.
import os

os.mkfifo("fifo")
child = os.fork()
if child == 0:
    with open("fifo", "w") as writer:
        for number in range(5):
            print("message", number, file=writer)
    os._exit(0)
with open("fifo") as reader:
    for line in reader:
        print(line.strip())
os.waitpid(child, 0)
os.unlink("fifo")
