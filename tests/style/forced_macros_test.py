#!/usr/bin/env python3
"""The test of forced macros can fail: each way to force one is found, and ordinary definitions are not."""
import unittest

from forced_macros import check_build_file, check_commands, check_source


class ForcedMacrosTest(unittest.TestCase):
    def test_build_files(self):
        for text in ["add_compile_definitions(atoll=atl)", "add_definitions(-DX)", "set_property(DIRECTORY PROPERTY COMPILE_DEFINITIONS X)",
                     "add_compile_options(-Datoll=atl)", "target_compile_options(a INTERFACE -include ${here}/rename.h)",
                     "target_compile_options(a\n  PRIVATE -Wall\n  -imacros x.h)", "target_compile_definitions(a PUBLIC ATOLL_X)",
                     "target_compile_definitions(a PRIVATE A INTERFACE B)", "target_compile_definitions(a PRIVATE atoll=atl)",
                     'set(CMAKE_CXX_FLAGS "-Datoll=atl")']:
            with self.subTest(text=text):
                self.assertEqual(len(check_build_file("cmake/a.cmake", text)), 1)
        preset = '"cacheVariables": {"CMAKE_CXX_FLAGS_DEBUG": "-O1 -Datoll=atl"}'
        self.assertNotEqual(check_build_file("CMakePresets.json", preset), [])

    def test_what_a_target_has_for_itself(self):
        for text in ["target_compile_definitions(a PRIVATE ATOLL_PLANTED_DEFECTS)", "# add_definitions(-DX) is forbidden",
                     'target_compile_definitions(a PRIVATE ATOLL_TEXT="${here}/text.txt")', "add_compile_options(-pthread -Wall)",
                     "target_include_directories(a PUBLIC ${PROJECT_SOURCE_DIR})", "execute_process(COMMAND cmake -D BASE=x -P y)",
                     '"CMAKE_CXX_FLAGS_DEBUG": "-O1 -g1"']:
            with self.subTest(text=text):
                self.assertEqual(check_build_file("cmake/a.cmake", text), [])

    def test_sources(self):
        self.assertEqual(check_source("core/a.h", "#ifndef ATOLL_CORE_A_H_\n#define ATOLL_CORE_A_H_\n"), [])
        self.assertNotEqual(check_source("core/a.h", "#define atoll atl\n"), [])
        self.assertNotEqual(check_source("core/a.cc", "  #  define private public\n"), [])

    def test_commands(self):
        ours = ["g++", "-DNDEBUG", "-include", "/build/cmake_pch.hxx", "-c", "a.cc"]
        self.assertEqual(check_commands([ours, ours + ["-DATOLL_X", '-DATOLL_TEXT="/a/b"', "-DUSE=1"]]), [])
        self.assertNotEqual(check_commands([ours, ours + ["-Datoll=atl"]]), [])
        self.assertNotEqual(check_commands([ours, ours + ["-D", "atoll=atl"]]), [])
        self.assertNotEqual(check_commands([ours, ours + ["-include", "rename.h"]]), [])
        self.assertNotEqual(check_commands([ours + ["-DX=1"], ours + ["-DX=1"]]), [])


if __name__ == "__main__":
    unittest.main()
