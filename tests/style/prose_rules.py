#!/usr/bin/env python3
"""Fails when a page or a text of the program breaks a rule of plain English that a machine can see.

Usage: prose_rules.py [--only pages|sources] [--sentences PAGE] [ROOT].

Every page: no banned word, no sentence that begins with a headless relative clause, a mean sentence of at most 20 words,
and at least 95 % of the sentences within 35 words. Code, tables and headings do not count as sentences.
Comments, messages and help texts of the sources: no banned word.

Prints one line for each violation; exit code 1 when there is one. --sentences lists a page's sentences, the longest first.
"""
import argparse
import collections
import pathlib
import re
import sys

MAX_MEAN_WORDS = 20
MAX_WORDS = 35
MIN_SHARE_WITHIN = 0.95

PAGES = ["README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "k8s/README.md", "monitoring/README.md"]
PAGE_FOLDER = "docs"
SOURCE_FOLDERS = ["common", "core", "tokenizer", "storage", "protos", "monitoring", "server", "client", "worker", "cli", "simulate", "bench", "k8s",
                  "configs", "scripts", "cmake", "examples", "python"]
SOURCE_SUFFIXES = {".h", ".cc", ".cu", ".cuh", ".proto", ".py", ".sh", ".cmake", ".yaml", ".yml", ".json", ".html", ".js", ".css",
                   ".txt", ".md", ".tpl"}
GENERATED = {"node_modules", "__pycache__", "testdata"}

# Any case. The second part says what to write.
BANNED_WORDS = [
    (r"anew", "again, or name the new thing"),
    (r"who(?:so)?ever", "any caller, every worker, the holder"),
    (r"(?:there|where)(?:of|upon|from|in|with)", "of it, from it, or a new sentence"),
    (r"that which", "name the thing"),
    (r"(?:what|all) there is", "name the thing"),
    (r"one that (?:is|are)", "a ... that is"),
    (r"nobody who", "no worker that"),
    (r"(?:that|which|such as) there (?:is|are|was|were)(?: not| no)?", "existing, nonexistent"),
    (r"there may not be", "disabled, missing"),
    (r"whose there (?:is|are)", "name the owner"),
    (r"\w+-?manieth", "every Nth"),
    (r"oftener", "more often"),
    (r"for good", "permanently"),
    (r"hears to", "is an alias of"),
    (r"as (?:it|he|they) likes? to", "unbounded"),
    (r"waits? for nobody", "never waits"),
    (r"shall", "must, will"),
    (r"begins? from the front", "restart"),
    (r"goes? by itself", "automatically"),
]

# Upper and lower case as written: names of classes that have been replaced by the field's terms.
OLD_NAMES = {
    "RunBook": "RunState", "Roster": "MemberRegistry", "RunLedger": "RunStatistics", "PrivacyLedger": "PrivacyAccountant",
    "ConnectionLedger": "ConnectionLimiter", "Ledger": "RunStatistics, StoreIndex", "OffenceBook": "OffenseTracker",
    "ConfigBook": "ConfigHistory", "SnapshotBoard": "PublishedVersions", "Board": "WorkerStatus", "Outbox": "EffectExecutor",
    "RoundPlans": "WorkAssignments", "JoinGate": "JoinRateLimiter", "Seats": "ConcurrencyLimit", "Intake": "ConnectionHandoff",
    "StreamCensus": "StreamCounter", "VersionStorer": "VersionWriter", "round_math": "fused_outer_step", "MergeMeter": "NormPass",
    "lane_sum": "deterministic_sum", "Lane": "FragmentDriver", "ExchangeLane": "ExchangeChannel", "Continuity": "ResumeState",
    "PushKeeper": "PushJournal", "LocalState": "WorkerCheckpoint", "Patience": "RetryPolicy", "Insist": "RetryLoop",
    "Refusal": "Rejection", "ContributionPacker": "PseudoGradientEncoder", "ParameterFollower": "ParameterPuller",
    "Loan": "BorrowedBuffer", "SidePull": "RangePull", "order_gate": "command_check", "EvaluationDuty": "EvaluationAssignment",
}

BANNED = re.compile(r"(?<![\w-])(?:" + "|".join(f"(?P<w{i}>{word})" for i, (word, _) in enumerate(BANNED_WORDS)) + r")(?![\w-])",
                    re.IGNORECASE)
OLD_NAME = re.compile(r"(?<![\w-])(?:" + "|".join(OLD_NAMES) + r")(?![\w-])")
HEADLESS = re.compile(r"(?:What|Who|Whom|Whose|Whatever)\b")

FENCE = re.compile(r"^\s*(```|~~~)")
LIST_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|al|Fig)|\b[A-Z])\.$")
# A full stop, then a space and the beginning of a sentence.
SENTENCE_END = re.compile(r"(?<=[.!?])[)\"*_\]]*\s+(?=[\"(*_\[`]*[A-Z0-9`/\-])")


def without_code(text):
    """The page with its code, tables, headings and comments replaced by empty lines, so that line numbers stay."""
    text = re.sub(r"<!--.*?-->", lambda match: "\n" * match.group().count("\n"), text, flags=re.DOTALL)
    lines = []
    in_fence = False
    in_paragraph = False
    for line in text.splitlines():
        if FENCE.match(line):
            in_fence = not in_fence
            line = ""
        elif in_fence or line.lstrip().startswith(("|", "#", "<")):
            line = ""
        elif not in_paragraph and re.match(r"(?: {4}|\t)", line) and not LIST_ITEM.match(line):
            line = ""  # an indented block of code, or the second paragraph of a list item: see paragraphs()
        in_paragraph = bool(line.strip())
        lines.append(line)
    return lines


def paragraphs(text):
    """Yields (line number, text on one line): each paragraph and each item of a list."""
    block, start = [], 0
    for number, line in enumerate([*without_code(text), ""], 1):
        if block and (not line.strip() or LIST_ITEM.match(line)):
            yield start, " ".join(block)
            block = []
        if line.strip():
            if not block:
                start = number
            block.append(LIST_ITEM.sub("", line).strip().lstrip("> "))


def plain(paragraph):
    """A link is its text, and a piece of code or the name of a page is one word."""
    paragraph = re.sub(r"\[[\w./]+\.md\]\([^)]*\)", "`page`", paragraph)
    paragraph = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)
    paragraph = re.sub(r"``.+?``|`[^`]*`", "`code`", paragraph)
    return re.sub(r"\bhttps?://[^\s)]*[^\s).,;:]", "`url`", paragraph)


def sentences(text):
    """Yields (line number of the paragraph, sentence)."""
    for number, paragraph in paragraphs(text):
        rest = ""
        for piece in SENTENCE_END.split(plain(paragraph)):
            rest = f"{rest} {piece}".strip()
            if not ABBREVIATION.search(rest):
                yield number, rest
                rest = ""
        if rest:
            yield number, rest


def count_words(sentence):
    return len([word for word in sentence.split() if re.search(r"\w", word)])


def check_sentences(path, text):
    found = []
    lengths = []
    too_long = []
    for number, sentence in sentences(text):
        words = count_words(sentence)
        if words == 0:
            continue
        lengths.append(words)
        if words > MAX_WORDS:
            too_long.append(f"{path}:{number}: {words} words in a sentence: {sentence[:70]}...")
        if HEADLESS.match(sentence.lstrip("*_\"(")) and not sentence.rstrip("*_\")").endswith("?"):
            found.append(f"{path}:{number}: a sentence begins with a relative clause; name the subject: {sentence[:70]}")
    if not lengths:
        return found
    mean = sum(lengths) / len(lengths)
    if mean > MAX_MEAN_WORDS:
        found.append(f"{path}: the mean sentence has {mean:.1f} words (at most {MAX_MEAN_WORDS})")
    within = 1 - len(too_long) / len(lengths)
    if within < MIN_SHARE_WITHIN:
        found.append(f"{path}: {100 * within:.1f} % of the sentences have at most {MAX_WORDS} words"
                     f" (at least {100 * MIN_SHARE_WITHIN:.0f} %)")
        found += too_long
    return found


def check_words(path, text):
    """Also finds a phrase that is broken over two lines of a comment."""
    found = []
    unbroken = re.sub(r"\n[ \t]*(?://[/!]?|#|\*|>)?[ \t]*(?=\S)", lambda match: "\n" + " " * (len(match.group()) - 1), text)
    for match in re.finditer(BANNED.pattern.replace(" ", r"\s+"), unbroken, re.IGNORECASE):
        word, advice = next((match.group(f"w{i}"), advice) for i, (_, advice) in enumerate(BANNED_WORDS) if match.group(f"w{i}"))
        found.append(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: '{' '.join(word.split())}'; write: {advice}")
    for match in OLD_NAME.finditer(text):
        found.append(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: the old name '{match.group()}';"
                     f" it is now {OLD_NAMES[match.group()]}")
    return found


def pages(root):
    return [root / name for name in PAGES if (root / name).exists()] + sorted((root / PAGE_FOLDER).rglob("*.md"))


def sources(root):
    for folder in SOURCE_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.suffix in SOURCE_SUFFIXES and not GENERATED & set(path.parts):
                if path.relative_to(root).as_posix() not in PAGES:
                    yield path


def list_sentences(path):
    text = path.read_text(encoding="utf-8")
    counts = collections.Counter()
    for number, sentence in sorted(sentences(text), key=lambda found: -count_words(found[1])):
        words = count_words(sentence)
        counts["sentences"] += 1
        counts["words"] += words
        print(f"{words:4} {path.name}:{number}: {sentence}")
    print(f"{counts['sentences']} sentences, mean {counts['words'] / max(1, counts['sentences']):.1f} words")


def main():
    parser = argparse.ArgumentParser(description="Checks the English of pages and sources.")
    parser.add_argument("--sentences", metavar="PAGE", type=pathlib.Path, help="List the sentences of one page, longest first.")
    parser.add_argument("--only", choices=["pages", "sources"], help="Check the pages alone, or the sources alone.")
    parser.add_argument("root", nargs="?", default=".", type=pathlib.Path)
    options = parser.parse_args()
    if options.sentences:
        list_sentences(options.sentences)
        return 0
    root = options.root.resolve()
    violations = []
    checked = 0
    for path in pages(root) if options.only != "sources" else []:
        checked += 1
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(root).as_posix()
        violations += check_words(name, text) + check_sentences(name, text)
    for path in sources(root) if options.only != "pages" else []:
        checked += 1
        violations += check_words(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
    if not checked:
        violations.append("no files found")
    for violation in violations:
        print(violation)
    print(f"{checked} files, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
