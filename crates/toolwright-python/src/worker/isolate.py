"""Calls in a child of the worker, which keep nothing: the state and the memory of a call end with it."""

import os
import signal

import _toolwright_wire as wire


class Isolated:
    """What a child has in the place of the worker's connection: its frames go to the worker."""

    forked = False

    def __init__(self, source, sink):
        self._wire = wire.Wire(source, sink)

    def send(self, header, attachments=()):
        self._wire.send(header, attachments)

    def receive(self):
        return self._wire.receive()


def call(worker, number, work):
    """Makes a call in a child, and hands on what it sends until its end."""
    from_child, to_parent = os.pipe()
    from_parent, to_child = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setpgid(0, 0)
            os.close(from_child)
            os.close(to_child)
            worker.become_child(Isolated(from_parent, to_parent))
            work()
        finally:
            os._exit(0)
    os.close(to_parent)
    os.close(from_parent)
    connection = wire.Wire(from_child, to_child)
    try:
        while True:
            header, attachments = connection.receive_whole()
            kind = header.get("type")
            if kind == "ask":
                connection.send(worker.relayed(number, header))
                continue
            worker.wire.send(dict(header, id=number), attachments)
            if kind in ("result", "error"):
                return
    except (wire.Closed, ValueError, OSError) as error:
        if isinstance(error, ValueError):
            # It wrote into the connection, so nothing more of it can be read.
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        child = None
        worker.end(number, {"kind": "unknown", "message": "the function ended its process: %s" % _ending(status)})
    finally:
        os.close(from_child)
        os.close(to_child)
        if child is not None:
            _kill(child)


def _kill(child):
    """Ends the child and what it started."""
    for end, target in ((os.killpg, child), (os.kill, child)):
        try:
            end(target, signal.SIGKILL)
        except OSError:
            pass
    try:
        os.waitpid(child, 0)
    except ChildProcessError:
        pass


def _ending(status):
    if os.WIFSIGNALED(status):
        return "signal %d" % os.WTERMSIG(status)
    return "exit code %d" % os.WEXITSTATUS(status)
