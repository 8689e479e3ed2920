"""Frames: u32 length of the header, u32 number of attachments, the header as JSON, the attachments."""

import threading
# Bound here, so that a file that replaces them for itself does not cut the connection.
from json import dumps, loads
from os import _exit, close, getpid, read, write
from struct import pack, unpack

# What the parent accepts.
MAX_HEADER = 64 << 20
MAX_ATTACHED = 128 << 20
MAX_ATTACHMENTS = 1_024


class Closed(Exception):
    """The parent is gone."""


class TooLarge(Exception):
    """A frame that the parent would refuse."""


class Wire:
    def __init__(self, source, sink):
        self._source = source
        self._sink = sink
        self._lock = threading.Lock()
        self._pid = getpid()

    @property
    def forked(self):
        """Whether this process is a child of the worker, to which the connection does not belong."""
        return getpid() != self._pid

    def close(self):
        """Closes the descriptors, in a child that must not write to them."""
        close(self._source)
        close(self._sink)

    def send(self, header, attachments=()):
        """Sends one frame; frames of several threads do not mix."""
        if self.forked:
            # A child that returned from the function or the file it was forked in.
            _exit(0)
        if attachments:
            header = dict(header, attachments=[len(part) for part in attachments])
        text = dumps(header, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")
        # A lone surrogate has no UTF-8 form; the parent would refuse the whole frame.
        text = text.decode("utf-8", "replace").encode("utf-8")
        attached = sum(map(len, attachments))
        if len(text) > MAX_HEADER or len(attachments) > MAX_ATTACHMENTS or attached > MAX_ATTACHED:
            raise TooLarge("the result is too large: %d bytes and %d pictures of %d bytes; at most %d, %d and %d" % (
                len(text), len(attachments), attached, MAX_HEADER, MAX_ATTACHMENTS, MAX_ATTACHED))
        parts = [pack(">II", len(text), len(attachments)), text, *attachments]
        with self._lock:
            for part in parts:
                view = memoryview(part)
                while view:
                    try:
                        view = view[write(self._sink, view):]
                    except BrokenPipeError:
                        raise Closed from None

    def receive(self):
        """The next frame. Parents send no attachments after the start."""
        length, _ = unpack(">II", self._take(8))
        return loads(self._take(length))

    def receive_whole(self):
        """The next frame of a child, with its attachments. A child may send anything."""
        length, count = unpack(">II", self._take(8))
        if length > MAX_HEADER or count > MAX_ATTACHMENTS:
            raise ValueError("a frame of %d bytes and %d attachments" % (length, count))
        header = loads(self._take(length))
        sizes = header.get("attachments", []) if isinstance(header, dict) else None
        if not isinstance(sizes, list) or len(sizes) != count or not all(type(one) is int and one >= 0 for one in sizes):
            raise ValueError("a frame whose attachments do not add up")
        if sum(sizes) > MAX_ATTACHED:
            raise ValueError("attachments of %d bytes" % sum(sizes))
        return header, [self._take(size) for size in sizes]

    def _take(self, count):
        parts = []
        while count:
            part = read(self._source, min(count, 1 << 20))
            if not part:
                raise Closed
            parts.append(part)
            count -= len(part)
        return b"".join(parts)
