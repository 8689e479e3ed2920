# Runs the programs of `python_execute` one after another in one Python.
#
# A request is its length, a newline, and JSON. What a program prints goes out as it is; a mark that the request names
# ends it on both streams. After the mark on standard output comes how it went, as one line of JSON.
import io, json, linecache, os, sys, tempfile, time, traceback, types

MOST_PICTURES = 4
LONGEST_PATH = 800

requests = os.fdopen(os.dup(0), "rb")
out, err = os.dup(1), os.dup(2)
own, home = os.getpid(), os.getcwd()
main = types.ModuleType("__main__")
sys.modules["__main__"] = main
pictures, left_out = [], 0


def keep(path):
    global left_out
    if path.startswith(home + "/"):
        path = "./" + os.path.relpath(path, home)
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise ValueError("the path of the picture is too long")
    if len(pictures) < MOST_PICTURES:
        pictures.append(path)
    else:
        left_out += 1
    return path


def save(write, ending):
    name = "image_%d_%d.%s" % (time.time() * 1000, len(pictures) + left_out, ending)
    for folder in (os.path.join(home, "outputs"), os.path.join(tempfile.gettempdir(), "outputs")):
        try:
            os.makedirs(folder, exist_ok=True)
            file = open(os.path.join(folder, name), "wb")
        except OSError as error:
            refused = error
            continue
        with file:
            write(file)
        return keep(file.name)
    raise refused


def display(shown=None):
    """Show a picture: a figure, an image, an array of pixels. Without one, all open figures. Anything else is printed."""
    if shown is None:
        plots = sys.modules.get("matplotlib.pyplot")
        for number in plots.get_fignums() if plots else ():
            save(plots.figure(number).savefig, "png")
        if plots:
            plots.close("all")
        return None
    if hasattr(shown, "savefig"):
        return save(shown.savefig, "png")
    for name, ending in (("_repr_png_", "png"), ("_repr_jpeg_", "jpg")):
        data = getattr(shown, name, lambda: None)()
        if isinstance(data, bytes):
            return save(lambda file: file.write(data), ending)
    if type(shown).__name__ == "ndarray":
        from PIL import Image

        shown = Image.fromarray(shown)
        return save(lambda file: shown.save(file, "png"), "png")
    print(shown)


def display_image(path):
    """Show the picture in a file."""
    open(path, "rb").close()
    return keep(os.path.abspath(path))


main.__dict__.update(display=display, display_image=display_image)


def prepare(request):
    # A program may have closed any of them; what is opened below must not take their places.
    for number, stream in enumerate((out, out, err)):
        os.dup2(stream, number)
    for name, number in (("stdout", 1), ("stderr", 2)):
        raw = open(number, "wb", closefd=False)
        stream = io.TextIOWrapper(raw, "utf-8", "backslashreplace", line_buffering=True)
        setattr(sys, name, stream)
    with tempfile.TemporaryFile() if request["stdin"] else open(os.devnull, "rb") as file:
        if request["stdin"]:
            file.write(request["stdin"].encode())
            file.seek(0)
        os.dup2(file.fileno(), 0)
    sys.stdin = open(0, encoding="utf-8", errors="replace", closefd=False)
    os.environ.update(request["env"])
    os.chdir(home)


def run(code, name):
    # As in a file that is read, the last line ends in a newline; the marks under it are a column off otherwise.
    lines = [line + "\n" for line in code.split("\n")]
    linecache.cache[name] = (len(code), None, lines, name)
    try:
        exec(compile(code, name, "exec"), main.__dict__)
        return 0
    except SystemExit as end:
        if end.code is None:
            return 0
        if isinstance(end.code, int):
            return end.code & 255
        print(end.code, file=sys.stderr)
        return 1
    except BaseException as error:
        # The first place is the one above.
        traceback.print_exception(type(error), error, error.__traceback__.tb_next)
        return 1


def finish():
    import atexit, threading

    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass


def serve():
    global left_out
    number = 0
    while True:
        length = requests.readline()
        if not length:
            return
        request = json.loads(requests.read(int(length)))
        number += 1
        pictures.clear()
        left_out = 0
        prepare(request)
        code = run(request["code"], "<program %d>" % number)
        if request["last"]:
            finish()
        flush()
        if os.getpid() != own:
            # A child that came out of the program: nobody waits for its word.
            os._exit(code)
        mark = request["mark"].encode()
        told = json.dumps({"code": code, "folder": home, "pictures": pictures, "left_out": left_out}).encode()
        os.write(err, mark)
        os.write(out, mark + told + b"\n")


serve()
