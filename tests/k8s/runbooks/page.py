"""The commands of a page: its fenced blocks of shell, in order, each with the heading that it stands under."""
import re


def blocks(text):
    """(heading, commands) of every ```sh block; blocks in a list item are indented."""
    heading, found = "", []
    for match in re.finditer(r"(?m)^(#+ [^\n]*)$|^( *)```sh\n(.*?)^ *```$", text, re.S | re.M):
        if match[1]:
            heading = match[1].lstrip("# ").strip()
        else:
            found.append((heading, "\n".join(line[len(match[2]):] for line in match[3].splitlines())))
    return found


def section(text, title):
    """What stands under a heading, up to the next one of its level."""
    (start,) = re.finditer(rf"(?m)^(#+) {re.escape(title)}$", text)
    end = re.compile(rf"(?m)^#{{1,{len(start[1])}}} ").search(text, start.end())
    return text[start.start():end.start() if end else len(text)]
