"""A collection of seven documents in the official form, and the same as the npm package's records."""

import io
import json
import tarfile

HEADER = '<!DOCTYPE lewis SYSTEM "lewis.dtd">\n'


def document(number, text, topics=(), split="TRAIN", *, has_topics="YES", kind=""):
    listed = "".join(f"<D>{topic}</D>" for topic in topics)
    return (
        f'<REUTERS TOPICS="{has_topics}" LEWISSPLIT="{split}" CGISPLIT="TRAINING-SET" OLDID="9" '
        f'NEWID="{number}">\n'
        f"<DATE>26-FEB-1987</DATE>\n<TOPICS>{listed}</TOPICS>\n<PLACES><D>usa</D></PLACES>\n"
        f"<UNKNOWN>&#5;C T</UNKNOWN>\n<TEXT{kind}>&#2;\n{text}</TEXT>\n</REUTERS>\n"
    )


FIRST = HEADER + "".join(
    [
        document(
            1,
            "<TITLE>OIL &lt;XON> UP</TITLE>\n<DATELINE>  NEW YORK, Feb 26 - </DATELINE><BODY>Crude rose\n"
            "    5 pct &amp; more.\n Reuter\n&#3;</BODY>",
            ["crude", "earn", "crude"],
        ),
        document(2, "*<TITLE>GOLD FIRM</TITLE>\nBlah blah blah.\n&#3;\n", ["gold"], kind=' TYPE="BRIEF"'),
        document(
            3,
            "WEEKLY REPORT\n Reserves....644\xfc\n REUTER...\n&#3;\n",
            ["earn", "rare"],
            kind=' TYPE="UNPROC"',
        ),
        document(4, "<TITLE>NO</TITLE><BODY>No topics.</BODY>", [], has_topics="NO"),
    ]
)
SECOND = HEADER + "".join(
    [
        document(14900, "<TITLE>EARN</TITLE><BODY>Shr 5 cts.\nReuter\n&#3;</BODY>", ["earn", "crude"], "TEST"),
        document(14901, "<TITLE>GOLD</TITLE><BODY>Gold fell. Reuters said so.</BODY>", ["gold", "new"], "TEST"),
        document(17056, "<TITLE>UNUSED</TITLE><BODY>x</BODY>", ["gold"], "NOT-USED"),
    ]
)
SGML = {"reut2-000.sgm": FIRST.encode("latin-1"), "reut2-001.sgm": SECOND.encode("latin-1")}

RECORDS = [
    {
        "id": "1",
        "title": "OIL <XON> UP",
        "body": "Crude rose\n    5 pct & more.\n Reuter\n\x03",
        "topics": ["crude", "earn", "crude"],
    },
    {"id": "2", "title": "GOLD FIRM", "topics": ["gold"]},
    {"id": "3", "topics": ["earn", "rare"]},
    {"id": "4", "title": "NO", "body": "No topics."},
    {"id": "14900", "title": "EARN", "body": "Shr 5 cts.\nReuter\n\x03", "topics": ["earn", "crude"]},
    {"id": "14901", "title": "GOLD", "body": "Gold fell. Reuters said so.", "topics": ["gold", "new"]},
    {"id": "17056", "title": "UNUSED", "body": "x", "topics": ["gold"]},
]
JSON = {
    "package/data/full/reuters-000.json": json.dumps(RECORDS[:4]).encode(),
    "package/data/full/reuters-001.json": json.dumps(RECORDS[4:]).encode(),
    "package/data/noIDs/reuters-000.json": b"[{}]",
}


def pack(path, members, mode="w:gz"):
    """Write a tar file of members: name to content."""
    with tarfile.open(path, mode) as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def unpack(folder, members):
    """Write members as files of a folder."""
    for name, data in members.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder
