# Processes by fork, by spawn and by fork server.
import multiprocessing as mp


def send(pipe, word):
    pipe.send({"word": word, "upper": word.upper()})
    pipe.close()


if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        context = mp.get_context(method)
        ours, theirs = context.Pipe()
        child = context.Process(target=send, args=(theirs, method))
        child.start()
        print(ours.recv())
        child.join()
        print(child.exitcode)
