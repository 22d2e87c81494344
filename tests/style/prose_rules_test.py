#!/usr/bin/env python3
"""The prose test can fail: each rule, broken once and kept once."""
import unittest

import prose_rules

# Written so that this file does not contain what the test looks for.
BANNED = ["an" + "ew", "Who" + "ever", "there" + "of", "that " + "which", "what " + "there is", "one " + "that is", "so-" + "manieth",
          "often" + "er", "that " + "there are", "for " + "good"]


def sentence_of(words):
    return "Workers" + " push" * (words - 1) + "."


def page_of(*lengths):
    return "\n".join(sentence_of(length) for length in lengths) + "\n"


class BannedWordsTest(unittest.TestCase):
    def test_words(self):
        for word in BANNED:
            self.assertNotEqual(prose_rules.check_words("docs/a.md", f"The worker, {word} the run.\n"), [], word)
        self.assertEqual(prose_rules.check_words("docs/a.md", "A newer worker renews a thereoffer, more often than that.\n"), [])

    def test_phrase_broken_over_two_lines_of_a_comment(self):
        self.assertNotEqual(prose_rules.check_words("core/a.h", "/// Returns the one that\n  /// is open.\n"), [])
        self.assertNotEqual(prose_rules.check_words("a.sh", "# the one that\n# is open\n"), [])
        found = prose_rules.check_words("core/a.h", "int a;\n// for\n//   good\n")
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith("core/a.h:2:"), found)

    def test_old_names(self):
        self.assertNotEqual(prose_rules.check_words("server/a.cc", "  Run" + "Book book;\n"), [])
        self.assertNotEqual(prose_rules.check_words("docs/a.md", "`La" + "ne` sends it.\n"), [])
        self.assertEqual(prose_rules.check_words("server/a.cc", "  RunState state; Lanes lanes; int lane;\n"), [])

    def test_every_word_has_advice(self):
        for word, advice in prose_rules.BANNED_WORDS:
            self.assertTrue(word and advice)


class SentencesTest(unittest.TestCase):
    def test_mean(self):
        self.assertEqual(prose_rules.check_sentences("a.md", page_of(20, 20, 20)), [])
        self.assertNotEqual(prose_rules.check_sentences("a.md", page_of(20, 20, 21)), [])

    def test_tail(self):
        self.assertEqual(prose_rules.check_sentences("a.md", page_of(*[10] * 19, 36)), [])
        self.assertNotEqual(prose_rules.check_sentences("a.md", page_of(*[10] * 18, 36)), [])
        self.assertEqual(prose_rules.check_sentences("a.md", page_of(*[10] * 18, 35)), [])

    def test_headless_relative_clauses(self):
        self.assertNotEqual(prose_rules.check_sentences("a.md", "Calls end. What is refused is counted.\n"), [])
        self.assertNotEqual(prose_rules.check_sentences("a.md", "- **Who asks** is answered.\n"), [])
        self.assertEqual(prose_rules.check_sentences("a.md", "Refused calls are counted. What does a worker do?\n"), [])

    def test_code_tables_and_headings_do_not_count(self):
        long = " ".join(["word"] * 60)
        page = f"# What {long}\n\n```sh\n{long}\n```\n\n| a | b |\n|---|---|\n| {long} | b |\n\n    {long}\n\nA short sentence.\n"
        self.assertEqual(prose_rules.check_sentences("a.md", page), [])
        self.assertEqual([words for _, words in prose_rules.sentences(page)], ["A short sentence."])

    def test_code_and_links_in_a_sentence(self):
        text = "Run `atollctl plan run.yaml --bandwidth 1Gbit/s`; see [the page of the plan](guides/a.md#plan).\n"
        (_, sentence), = prose_rules.sentences(text)
        self.assertEqual(prose_rules.count_words(sentence), 8)
        self.assertEqual(len(list(prose_rules.sentences("It reads. [a.md](a.md) has it.\n"))), 2)

    def test_where_sentences_end(self):
        text = "It takes 0.5 s, e.g. on one core. `Push` returns\nOK.\n- An item\n  of two lines\n- Another: x. (Third.) The fourth!\n"
        self.assertEqual([sentence for _, sentence in prose_rules.sentences(text)],
                         ["It takes 0.5 s, e.g. on one core.", "`code` returns OK.", "An item of two lines", "Another: x.", "(Third.",
                          "The fourth!"])

    def test_a_page_without_sentences(self):
        self.assertEqual(prose_rules.check_sentences("a.md", "# Heading\n"), [])


if __name__ == "__main__":
    unittest.main()
