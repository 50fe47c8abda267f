import os, signal, time
try:
    os.kill(os.getpid(), signal.SIGINT); time.sleep(1)
except KeyboardInterrupt:
    print('interrupted')
os.kill(os.getpid(), signal.SIGINT); time.sleep(1)
