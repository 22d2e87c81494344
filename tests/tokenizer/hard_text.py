"""Texts on which tokenizers differ, and random ones."""
import random

SCRIPTS = (
    "The quick brown fox's tail, they'll say it'd've been I'm WE'RE 'S 'Ll don'T rock'n'roll ''s 's's can't",
    "Съешь же ещё этих мягких французских булок", "Η ταχεία αλεπού ΣΊΣΥΦΟΣ ς", "快速的棕色狐狸跳过懒狗。敏捷的狐狸", "いろはにほへと チリヌルヲ ｶﾀｶﾅ",
    "키스의 고유조건은 입술끼리 만나야", "صِف خَلقَ خَودِ كَمِثلِ الشَمسِ ١٢٣٤٥", "דג סקרן שט בים מאוכזב", "नमस्ते दुनिया क्षत्रिय १२३", "เป็นมนุษย์สุดประเสริฐ ๑๒๓",
    "Tiếng Việt có dấu: ế ề ể ễ ệ", "ǅ ǈ ᾼ ᾈ ªº ʰʱ ₐ ⅷ Ⅷ ½ ² ㊄ 𝟘𝟙𝟚 ௰ 𐄇 𒐀", "ÅngstrÖm ﬁ ﬂ ß ẞ ſ 'ſ 'ſx I'ſ K Å Ω",
    "e\u0301 o\u0308\u0323 \u0323\u0308o q\u0307\u0323 \u0344 \u0958 \u2126 가\u11a8 \u1100\u1161\u11a8 \u0b47\u0b56 \u212b\u0327",
    "👍🏽 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇫🇷 1️⃣ ❤️ ☃︎ 🧑🏿‍🚀", "a\u200bb\u200cc\u200dd\u2060e\ufefff \u00ad \u180e x\u180ey \u202e",
    "\U00011DE0\U00011DE5 \U00016FF4 \U000105D2 \u1C89 \U0001CCF0 \U00010D40", "\ue000\uf8ff \U000e0001 \U000f0000 \U0010ffff \u0378 \ufffe",
)
SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2003\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
NUMBERS = "0 1 12 123 1234 12345 1234567 3.14159 1,000,000 0x1F 1e-9 2026-11-26 v1.2.3 ٣٤٥٦ ⅣⅤ½¼ 12a34b a1b22c333d4444"
CODE = "for(int i=0;i<10;++i){\n\tprintf(\"%d\\n\",i);   // x\n}\r\n\r\n\n  \n\tdef f(x):\n        return x**2  # ok\n\n\n<a href='x'>/usr//lib/\n/\n</a>!!!\n\n///\n"
SPECIAL = "<|endoftext|> <|im_start|>user\n<|im_end|> <|begin_of_text|> <|end_of_text|> <tool_call>{}</tool_call> <|fim_prefix|>x <tool_call"
MIXED = "CamelCase HTTPServer XMLHttpRequest iPhone ABCdef ABC's McDONALD'S ªAB ªABc Aª AªB \u0301AB \u0301A !\u0301 !!\u0301a AB\u0301 ÀÉ ÀÉé"


def white_space():
    """Every two kinds of white space beside letters, digits, signs and the end."""
    parts = []
    for first in SPACES:
        for second in SPACES:
            run = first + second
            parts += [f"a{run}b", f"a{run}{first}1", f"!{run}.", f"{run}'s", f"x{first}"]
    return "".join(parts)


def hard_texts():
    base = [*SCRIPTS, NUMBERS, CODE, SPECIAL, MIXED, white_space(), SPACES]
    ends = [text + end for text in ("a", "1", "!", "a\n", "", "\n \n") for end in ("  ", "\n", " \n", "\n  ", "\r\n\r\n", "\t\t", "\u3000 ", " \n\n  ")]
    return base + ends + [" ".join(base), "\n".join(base)] + [text.upper() for text in base[:3]]


INVALID = (b"\xff", b"a\x80b", b"\xc3", b"x\xc3\x28y", b"\xe2\x82", b"\xe2\x28\xa1", b"\xf0\x9f\x98", b"\xf0\x9f\x98\xff\xf0\x9f", b"\xed\xa0\x80\xed\xb0\x80",
           b"\xf4\x90\x80\x80", b"\xc0\xaf", b"\xe0\x80\xaf", b"\xf8\x88\x80\x80\x80", b" \xfe\xff 1\xe2\x82\x61 \xc3\xa9\xc3", b"word\xf1\x80word\n\xe1\x80\n")

PIECES = [*"aZé'sStTlLdDmM 0129!.,-_/<|>\n\r\t\u0301", "  ", "\n\n", "'s", "'RE", "'ll", " the", "ing", "é", "Я", "中文", "한", "ª", "ǅ", "１", "½", "\u3000", "\x85",
          "👩‍👧", "\u0323", "\u1161", "\u212b", "ſ", "<tool_call>", "<|endoftext|>", "\U00011de1", "\u180e", "aaaaaaaa", "AAAA", "----", "\xa0"]


def random_text(source: random.Random):
    kind = source.randrange(4)
    count = source.randrange(1, 60)
    if kind == 0:  # any code points
        return "".join(chr(source.choice((source.randrange(0x300), source.randrange(0xd800), source.randrange(0xe000, 0x110000)))) for _ in range(count))
    if kind == 1:  # few pieces, often repeated
        few = source.sample(PIECES, 4)
        return "".join(source.choice(few) for _ in range(count))
    return "".join(source.choice(PIECES) for _ in range(count))


def random_bytes(source: random.Random):
    data = bytearray(random_text(source).encode())
    for _ in range(source.randrange(1, 6)):
        data.insert(source.randrange(len(data) + 1), source.choice((0xff, 0xc3, 0xe2, 0x80, 0xf0, 0x9f, 0xed, 0xa0)))
    return bytes(data)
