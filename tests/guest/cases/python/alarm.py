import signal, time
def handler(n, frame):
    print('alarm', n, frame.f_code.co_name)
    raise TimeoutError('late')
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.05)
time.sleep(5)
