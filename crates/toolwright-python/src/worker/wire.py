"""Frames: u32 length of the header, u32 number of attachments, the header as JSON, the attachments."""

import json
import os
import struct
import threading


class Closed(Exception):
    """The parent is gone."""


class Wire:
    def __init__(self, source, sink):
        self._source = source
        self._sink = sink
        self._lock = threading.Lock()

    def send(self, header, attachments=()):
        """Sends one frame; frames of several threads do not mix."""
        if attachments:
            header = dict(header, attachments=[len(part) for part in attachments])
        text = json.dumps(header, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")
        # A lone surrogate has no UTF-8 form; the parent would refuse the whole frame.
        text = text.decode("utf-8", "replace").encode("utf-8")
        parts = [struct.pack(">II", len(text), len(attachments)), text, *attachments]
        with self._lock:
            for part in parts:
                view = memoryview(part)
                while view:
                    try:
                        view = view[os.write(self._sink, view):]
                    except BrokenPipeError:
                        raise Closed from None

    def receive(self):
        """The next frame. Parents send no attachments after the start."""
        length, _ = struct.unpack(">II", self._take(8))
        return json.loads(self._take(length))

    def _take(self, count):
        parts = []
        while count:
            part = os.read(self._source, min(count, 1 << 20))
            if not part:
                raise Closed
            parts.append(part)
            count -= len(part)
        return b"".join(parts)
