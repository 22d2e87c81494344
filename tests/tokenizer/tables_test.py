#!/usr/bin/env python3
"""The tables of Unicode are what generate_tables.py writes from the pinned version."""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import oracles

oracles.use_interop_python(("unicodedata2",))
sys.exit(subprocess.run([sys.executable, "-B", oracles.ROOT / "tokenizer/generate_tables.py", "--check"], check=False).returncode)
