"""rewind - a step that ends badly is as if it had never been.

    supervisor          the session's first process; it never runs a line of the program
      \u2514 parked          the session as it was before the last step
          \u2514 active      runs the step, and waits for the next one

A step is run by a fork.  If that lives, it goes on as the session, and what it was forked from
stays, so that the step can be undone until the next one begins.  If it dies, that takes over:
it ends whatever the step has started, puts the files back, and says how the step ended.  A
step that does not stop is ended by the supervisor, which the host can signal (SIGTERM).

All of them have the program's own rights.  One that attacks the others loses its session.
"""
import mmap
import os
import random
import select
import signal
import stat
import struct
import sys
import time
from _thread import _count as count_threads
from os import _exit as exit_now

FILES_MAX = 64 << 20   # bytes of the workspace that are remembered; beyond, files are kept
ENTRIES_MAX = 10000
PR_SET_CHILD_SUBREAPER = 36
ROLLED_BACK = object()  # begin(): the step has been, and is no more

_RUNNING, _DONE, _UNDO = range(3)
_STATE = struct.Struct("=BQ")  # of the step, and the number of whoever undoes it


# ---- processes ---------------------------------------------------------------------------------

def end_others(*keep):
    """End all processes of the sandbox but its first, ourselves and these."""
    spared = {1, os.getpid(), *keep}
    _signal(-1, signal.SIGSTOP)  # all at once, so that none can start another meanwhile
    others = [int(name) for name in os.listdir("/proc")
              if name.isdigit() and int(name) not in spared]
    for pid in others:
        _signal(pid, signal.SIGKILL)
    for pid in keep:
        _signal(pid, signal.SIGCONT)
    while any(map(_lives, others)):  # what they still have to let go of may be what we put back
        time.sleep(0.001)


def _signal(pid, number):
    try:
        os.kill(pid, number)
    except OSError:
        pass


def die_like(status):
    """End as another process has."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    exit_now(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1)


def _children():
    with open("/proc/self/task/%d/children" % os.getpid(), encoding="ascii") as file:
        return file.read().split()


def _lives(pid):
    """Not of one that is dead, and that nobody has asked for."""
    try:
        with open("/proc/%s/stat" % pid, "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in b"ZX"
    except OSError:
        return False


def _wait(pid):
    """How it ended.  Looked at first: whoever is being killed himself must not take it along."""
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return os.waitpid(pid, 0)[1]


def _become_subreaper():
    import ctypes
    return ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


class Supervisor:
    """Parent of all that a program starts; told through a pipe who is parked."""

    def __init__(self, root, pipe):
        self.root, self.parked = root, None
        self.pipe = pipe
        self.unread = b""

    def serve(self):
        signals = {signal.SIGTERM, signal.SIGCHLD}
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        while True:
            self.reap()
            if signal.sigwait(signals) == signal.SIGTERM:
                self.listen()
                if self.parked:
                    end_others(self.parked)

    def listen(self):
        while select.select([self.pipe], [], [], 0)[0]:
            data = os.read(self.pipe, 4096)
            if not data:
                return
            *lines, self.unread = (self.unread + data).split(b"\n")
            for line in lines:
                self.root = int(line[1:])
                self.parked = self.root if line[:1] == b"P" else None

    def reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                exit_now(1)
            if pid == 0:
                return
            self.listen()
            if pid == self.root:
                die_like(status)


# ---- files -------------------------------------------------------------------------------------

class Files:
    """The workspace as it was: what has changed since is read when it is remembered again."""

    def __init__(self, root):
        self.root = root
        self.entries = {}  # path: (mode, what identifies it, bytes or a link's target)
        self.is_complete = True
        self.offsets = {}

    def remember(self):
        found, size = {}, 0
        self.is_complete = True
        for path, status in self._walk():
            size += status.st_size
            if size > FILES_MAX or len(found) >= ENTRIES_MAX:
                self.entries, self.is_complete = {}, False
                return
            try:
                found[path] = self._entry(path, status)
            except OSError:  # not to be read by its owner: a program's own business
                self.entries, self.is_complete = {}, False
                return
        self.entries = found
        self.offsets = dict(self._offsets())

    def _entry(self, path, status):
        mark = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        known = self.entries.get(path)
        if known and known[0] == status.st_mode and known[1] == mark:
            return known
        content = None
        if stat.S_ISREG(status.st_mode):
            with open(path, "rb", buffering=0) as file:
                content = file.read(FILES_MAX)
        elif stat.S_ISLNK(status.st_mode):
            content = os.readlink(path)
        return status.st_mode, mark, content

    def _walk(self):
        """Everything that can be put back, directories before what is in them."""
        waiting = [self.root]
        while waiting:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(status.st_mode):
                        waiting.append(entry.path)
                    if stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode) \
                            or stat.S_ISLNK(status.st_mode):
                        yield entry.path, status

    @staticmethod
    def _offsets():
        """Where open files are read and written: a fork moves its parent's, too."""
        for name in os.listdir("/proc/self/fd"):
            try:
                yield int(name), os.lseek(int(name), 0, os.SEEK_CUR)
            except OSError:
                pass

    def restore(self):
        """Whether all is as it was."""
        for fd, offset in self.offsets.items():
            try:
                os.lseek(fd, offset, os.SEEK_SET)
            except OSError:
                pass
        if not self.is_complete:
            return False
        try:
            self._remove_new()
            for path, (mode, mark, content) in self.entries.items():
                self._put_back(path, mode, mark, content)
        except OSError:
            return False
        return True

    def _remove_new(self):
        for path, status in sorted(self._walk(), reverse=True):  # what is in a directory first
            known = self.entries.get(path)
            if known and stat.S_IFMT(known[0]) == stat.S_IFMT(status.st_mode):
                continue
            if stat.S_ISDIR(status.st_mode):
                import shutil
                shutil.rmtree(path)  # with pipes and sockets that are not remembered
            else:
                os.unlink(path)

    @staticmethod
    def _put_back(path, mode, mark, content):
        try:
            now = os.lstat(path)
        except FileNotFoundError:
            now = None
        if now and (now.st_mode, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns) == \
                (mode, *mark):
            return
        if stat.S_ISDIR(mode):
            if not now:
                os.mkdir(path)
        elif stat.S_ISLNK(mode):
            if now:
                os.unlink(path)
            os.symlink(content, path)
            return
        else:
            if now:
                os.chmod(path, 0o600)
            with open(path, "wb", buffering=0) as file:
                file.write(content)
        os.chmod(path, stat.S_IMODE(mode))
        os.utime(path, ns=(mark[2], mark[2]))


# ---- the session -------------------------------------------------------------------------------

class Rewind:
    """One process's view of it."""

    def __init__(self, channel):
        self.channel = channel
        self.files = Files(os.getcwd())
        self.parked = None  # the process that we were forked from, and that waits
        self.supervisor = os.getpid()
        self.state = mmap.mmap(-1, mmap.PAGESIZE)  # shared by forks
        reader, self.pipe = (channel.high(fd) for fd in os.pipe())
        names = set(sys.modules)
        if not _become_subreaper():
            raise OSError("the session cannot be its programs' parent")
        for name in set(sys.modules) - names:  # what we needed is no business of the program's
            del sys.modules[name]
        pid = self._fork()
        if pid:
            os.close(self.pipe)
            Supervisor(pid, reader).serve()  # does not return
        os.close(reader)

    def _fork(self):
        """As os.fork(), but the session goes on in the child: also its random numbers."""
        numbers = random.getstate()
        self.channel.is_passed_on = True
        pid = os.fork()
        self.channel.is_passed_on = False
        if pid == 0:
            self.channel.adopt()
            random.setstate(numbers)
        return pid

    def _tell(self, what):
        try:
            os.write(self.pipe, b"%s%d\n" % (what, os.getpid()))
        except OSError:  # the program has closed it; the supervisor will end a process too many
            pass

    def begin(self, step):
        """Before a step: None, and the step may run; why it cannot be taken back; or ROLLED_BACK,
        when it has run and its end has been told of."""
        reason = self._obstacle()
        self._drop()
        if reason:
            self._tell(b"A")
            return reason
        self.files.remember()
        self._set(_RUNNING)
        self._tell(b"P")
        pid = self._fork()
        if pid == 0:
            self.parked = os.getppid()
            _offer_to_the_killer()
            return None
        self._park(pid, step)
        return ROLLED_BACK

    @staticmethod
    def _obstacle():
        """What a fork would not take along."""
        if count_threads() > 0:
            return "threads are running"
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return None
        return "child processes are running" if any(map(_lives, _children())) else None

    def _drop(self):
        """What was parked for the last step is not needed any more."""
        if self.parked:
            self._tell(b"A")  # first: its end is not the session's
            _signal(self.parked, signal.SIGKILL)
            self.parked = None

    def is_covered(self):
        return self.parked is not None

    def done(self):
        """The step is over, and its result is about to be told."""
        if self.parked:
            self._set(_DONE)

    def undo(self, number):
        """Take back the last step: our end, if there is somebody to go on."""
        if not self.parked:
            return
        self._set(_UNDO, number)
        exit_now(0)

    def _set(self, state, number=0):
        self.state[:_STATE.size] = _STATE.pack(state, number)

    def _park(self, pid, step):
        status = _wait(pid)
        state, number = _STATE.unpack(self.state[:_STATE.size])
        if state == _DONE:  # it died between two steps, and nothing was said of what it had done
            die_like(status)
        end_others(self.supervisor)
        self._tell(b"A")
        message = {"op": "result", "id": number if state == _UNDO else step, "rolled_back": True}
        if not self.files.restore():
            message["files_kept"] = True
        if state == _UNDO:
            pass
        elif os.WIFSIGNALED(status):
            message["signal"] = os.WTERMSIG(status)
        else:
            message["exit_code"] = os.WEXITSTATUS(status)
        self.channel.send(message)


def _offer_to_the_killer():
    """When memory runs out, this one goes, and not what it could be rolled back to."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")
    except OSError:
        pass
