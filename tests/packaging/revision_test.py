#!/usr/bin/env python3
"""The revision that --version prints: the one a build is told, else git's; every image's build stage is told it.

Usage: revision_test.py SOURCE_DIR CMAKE. Exit codes: 0 all of it, 1 not (the complaints are printed).
"""
import pathlib
import re
import subprocess
import sys
import tempfile

REVISION = "0123456789abcdef0123456789abcdef01234567"


def written(cmake, source, sources_of, *more):
    """kGitRevision of the header that a build of the folder `sources_of` writes."""
    with tempfile.TemporaryDirectory(prefix="atoll-revision-") as folder:
        out = pathlib.Path(folder) / "version.h"
        subprocess.run([cmake, "-D", f"SOURCE_DIR={sources_of or folder}", "-D", "VERSION=1.2.3", *more,
                        "-D", f"TEMPLATE={source / 'cmake/version.h.in'}", "-D", f"OUT={out}",
                        "-P", source / "cmake/WriteVersion.cmake"], check=True, timeout=60)
        return re.search(r'kGitRevision = "(.*)";', out.read_text()).group(1)


def main():
    source, cmake = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    complaints = []
    for sources_of in (None, source):
        found = written(cmake, source, sources_of, "-D", f"REVISION={REVISION}")
        if found != REVISION:
            complaints.append(f"told {REVISION}, a build of {sources_of or 'a folder without git'} has '{found}'")
    if written(cmake, source, None, "-D", "REVISION=") != "":
        complaints.append("without git and told nothing, there is a revision")
    images = sorted((source / "k8s/images").glob("*.Dockerfile"))
    for image in images:
        build = image.read_text().split(" AS prebuilt")[0]
        if not re.search(r"^ARG REVISION=$", build, re.M) or '-DATOLL_REVISION="${REVISION}"' not in build:
            complaints.append(f"{image.name}: its build stage compiles without the revision")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints or len(images) < 3 else 0


if __name__ == "__main__":
    sys.exit(main())
