"""Packs a program as a wheel: a zip whose scripts folder holds the program.

usage: pack_wheel.py PROGRAM VERSION TAG README LICENSE... FOLDER

Prints the path of the wheel. Standard library only; the date of every entry is fixed, so that one program makes
one wheel.
"""

import base64
import hashlib
import sys
import zipfile

program, version, tag, readme, *licenses, folder = sys.argv[1:]
info = f"toolwright-{version}.dist-info"
metadata = f"""Metadata-Version: 2.4
Name: toolwright
Version: {version}
Summary: The tool runtime for language models
License-Expression: MIT OR Apache-2.0
Keywords: llm,agents,tools,mcp,sandbox
Classifier: Environment :: Console
Classifier: Operating System :: POSIX :: Linux
Description-Content-Type: text/markdown

{open(readme, encoding="utf-8").read()}"""
tags = "".join(f"Tag: py3-none-{platform}\n" for platform in tag.split("."))
wheel = f"Wheel-Version: 1.0\nGenerator: toolwright\nRoot-Is-Purelib: false\n{tags}"

entries = [(f"toolwright-{version}.data/scripts/toolwright", open(program, "rb").read(), 0o755)]
entries.append((f"{info}/METADATA", metadata.encode(), 0o644))
entries.append((f"{info}/WHEEL", wheel.encode(), 0o644))
for path in licenses:
    name = path.rsplit("/", 1)[-1]
    entries.append((f"{info}/licenses/{name}", open(path, "rb").read(), 0o644))


def hashed(content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"sha256={digest},{len(content)}"


record = "".join(f"{name},{hashed(content)}\n" for name, content, _ in entries) + f"{info}/RECORD,,\n"
entries.append((f"{info}/RECORD", record.encode(), 0o644))
out = f"{folder}/toolwright-{version}-py3-none-{tag}.whl"
with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
    for name, content, mode in entries:
        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, content)
print(out)
