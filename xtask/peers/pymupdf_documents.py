"""Text and figures of a folder of PDF files with PyMuPDF; makes the files when the folder is not there."""

import io
import json
import os
import random
import sys
import time

import pymupdf

WORDS = "river mountain light model paper result always under careful number language between structure".split()


def make(folder):
    from PIL import Image as Picture
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import BaseDocTemplate, Frame, Image, PageTemplate, Paragraph

    chance = random.Random(7)
    styles = getSampleStyleSheet()
    os.makedirs(folder)
    for number, (columns, figures) in enumerate([(1, False), (2, False), (1, True), (2, True)]):
        flow = []
        for part in range(400):
            if part % 20 == 0:
                flow.append(Paragraph(f"{part // 20 + 1} Chapter", styles["Heading1"]))
            flow.append(Paragraph(" ".join(chance.choice(WORDS) for _ in range(120)), styles["BodyText"]))
            if figures and part % 4 == 0:
                data = io.BytesIO()
                kind = "JPEG" if part % 8 == 0 else "PNG"
                Picture.frombytes("RGB", (320, 240), chance.randbytes(320 * 240 * 3)).save(data, kind)
                flow.append(Image(data, 160, 120))
        document = BaseDocTemplate(os.path.join(folder, f"{number}.pdf"), pagesize=A4)
        width = (A4[0] - 100) / columns
        frames = [Frame(50 + column * width, 50, width, A4[1] - 100) for column in range(columns)]
        document.addPageTemplates([PageTemplate(frames=frames)])
        document.build(flow)


def measure(files, figures):
    begun = time.process_time_ns()
    for path in files:
        try:
            document = pymupdf.open(path)
            if document.needs_pass:
                continue
            for page in document:
                if figures:
                    page.get_text("dict")
                else:
                    page.get_text()
        except Exception:
            continue
    return time.process_time_ns() - begun


folder = sys.argv[1]
if not os.path.isdir(folder):
    make(folder)
pymupdf.TOOLS.mupdf_display_errors(False)
files = sorted(os.path.join(root, name) for root, _, names in os.walk(folder) for name in names if name.lower().endswith(".pdf"))
best = lambda figures: min(measure(files, figures) for _ in range(3))
print(json.dumps({"text": best(False), "text and figures": best(True)}))
