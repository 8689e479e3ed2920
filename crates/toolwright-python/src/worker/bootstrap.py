# Takes the modules of the worker from its parent over standard input, and starts it. The connection moves to
# high descriptors, which programs that the tools start do not inherit.
import fcntl, json, os, struct, sys, types


def high(descriptor):
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 500)
    except OSError:
        return os.dup(descriptor)


source, sink = high(0), high(1)
empty = os.open(os.devnull, os.O_RDWR)
os.dup2(empty, 0)
os.dup2(2, 1)
os.close(empty)


def take(count):
    parts = []
    while count:
        part = os.read(source, min(count, 1 << 20))
        if not part:
            os._exit(0)
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


length, _ = struct.unpack(">II", take(8))
header = json.loads(take(length))
for name, size in zip(header["modules"], header["attachments"]):
    module = types.ModuleType(name)
    module.__file__ = "<%s>" % name
    sys.modules[name] = module
    exec(compile(take(size), module.__file__, "exec"), module.__dict__)
sys.modules["_toolwright_main"].run(source, sink, header)
