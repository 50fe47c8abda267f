# The collector's last round tells those who asked to be told.
import gc

told = []


def tell(phase, info):
    if not told:
        told.append(phase)
        print(phase, flush=True)


gc.callbacks.append(tell)
