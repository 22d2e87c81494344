#!/usr/bin/env python3
"""The house test can fail: each rule, broken once and kept once."""
import pathlib
import tempfile
import unittest

import house_rules

GUARDED = "#ifndef ATOLL_CORE_MERGE_H_\n#define ATOLL_CORE_MERGE_H_\n\n#endif  // ATOLL_CORE_MERGE_H_\n"


def function_of(lines):
    return "absl::Status Merge(int a) {\n" + "  a++;\n" * (lines - 2) + "}\n"


class HouseRulesTest(unittest.TestCase):
    def test_header_guard(self):
        self.assertEqual(house_rules.check_code_file("core/merge.h", GUARDED), [])
        self.assertNotEqual(house_rules.check_code_file("core/other.h", GUARDED), [])
        self.assertNotEqual(house_rules.check_code_file("core/merge.h", "#pragma once\n"), [])

    def test_file_length(self):
        self.assertNotEqual(house_rules.check_code_file("core/a.cc", "int x;\n" * 601), [])
        self.assertEqual(house_rules.check_code_file("core/a.cc", "int x;\n" * 600), [])

    def test_function_length(self):
        self.assertEqual(house_rules.check_functions("core/a.cc", function_of(60)), [])
        self.assertNotEqual(house_rules.check_functions("core/a.cc", function_of(61)), [])
        two = "int Declared(int a);\n" + function_of(40) + "\n" + function_of(40)
        self.assertEqual(house_rules.check_functions("core/a.cc", two), [])

    def test_channels_are_made_in_one_place(self):
        makes = "auto channel = grpc::CreateCustomChannel(address, credentials, arguments);\n"
        self.assertNotEqual(house_rules.check_code_file("cli/a.cc", makes), [])
        self.assertEqual(house_rules.check_code_file(house_rules.CHANNEL_MAKER, makes), [])

    def test_sizes(self):
        self.assertEqual(house_rules.check_sizes([100] * 20), [])
        self.assertNotEqual(house_rules.check_sizes([130] * 20), [])
        self.assertNotEqual(house_rules.check_sizes([50] * 16 + [500] * 4), [])
        self.assertNotEqual(house_rules.check_sizes([]), [])

    def test_machine_paths_and_conflicts(self):
        self.assertNotEqual(house_rules.check_text_file("docs/a.md", "see /" + "home/ann/atoll"), [])
        self.assertNotEqual(house_rules.check_text_file("docs/a.md", "<" * 7 + " HEAD"), [])
        self.assertEqual(house_rules.check_text_file("docs/a.md", "see docs/b.md and server/rpc/home/x"), [])

    def test_scripts_name_the_line_that_fails(self):
        shebang = "#!/usr/bin/env bash\n# What it does.\n"
        sources = 'source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"\n'
        self.assertEqual(house_rules.check_script("a.sh", shebang + "set -Eeuo pipefail\n" + sources + "true\n"), [])
        self.assertEqual(house_rules.check_script("a.sh", shebang + "set -Eeuo pipefail\ncd /\n. scripts/lib.sh\n"), [])
        self.assertEqual(house_rules.check_script("run", shebang + "set -Eeuo pipefail\ncd /\nexec bash b.sh\n"), [])
        self.assertEqual(house_rules.check_script("lib.sh", "# Sourced.\ntrue\n"), [])
        self.assertNotEqual(house_rules.check_script("a.sh", shebang + "set -Eeuo pipefail\ntrue\n"), [])
        self.assertNotEqual(house_rules.check_script("a.sh", shebang + "set -euo pipefail\n" + sources), [])
        self.assertNotEqual(house_rules.check_script("a.sh", shebang + sources + "set -Eeuo pipefail\n"), [])
        self.assertNotEqual(house_rules.check_script("a.sh", "#!/bin/sh\nset -e\ntrue\n"), [])
        self.assertNotEqual(house_rules.check_script("a.sh", shebang + "set -u\nfalse\nexec b\n"), [])

    def test_links(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs").mkdir()
            (root / "docs" / "b.md").write_text("b")
            self.assertEqual(house_rules.check_links(root, "docs/a.md", "[b](b.md#x) [w](https://example.org/x)"), [])
            self.assertNotEqual(house_rules.check_links(root, "docs/a.md", "[b](c.md)"), [])
            self.assertEqual(house_rules.check_links(root, "docs/a.md", "`[b](c.md)`"), [])

    def test_names_of_sources(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "core").mkdir()
            (root / "core" / "merge.h").write_text("")
            self.assertEqual(house_rules.check_source_names(root, "docs/a.md", "`core/merge.h`, `data/a.txt`, `core/*.h`"), [])
            self.assertNotEqual(house_rules.check_source_names(root, "docs/a.md", "see `core/gone.h`"), [])


if __name__ == "__main__":
    unittest.main()
