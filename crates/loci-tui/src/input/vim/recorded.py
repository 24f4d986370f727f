"""Records what vim itself does, for the test that compares: fills in `recorded.tsv` beside this file.

A row is the text before with `|` at the caret, keys, the text after, and what `p` would put in. Line ends, Escape and Enter are
written `\\n`, `\\e` and `\\r`; what a person types as one command stands together, and blanks stand between commands, since vim
gives up the rest of a line of keys where a command in it fails. New rows need the first two columns alone:
`python3 recorded.py`, with a `vim` in the path.
"""

import json
import os
import subprocess
import tempfile

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recorded.tsv")
ESCAPES = [("\\", "\\\\"), ("\n", "\\n"), ("\x1b", "\\e"), ("\r", "\\r")]
DRIVER = """
set nocompatible encoding=utf-8 shiftwidth=2 expandtab nojoinspaces noautoindent startofline notimeout belloff=all
let out = []
for [lines, line, char, commands] in json_decode(join(readfile("rows.json"), "\\n"))
  enew!
  let [undo, &undolevels] = [&undolevels, -1]
  call setline(1, lines)
  let &undolevels = undo
  call setreg('"', "zz", "v")
  call setcursorcharpos(line, char)
  for command in commands
    let &undolevels = &undolevels
    execute "normal! " . command
  endfor
  execute "normal! \\<Esc>"
  let place = getcursorcharpos()
  call add(out, json_encode([getline(1, "$"), place[1], place[2], getreg('"')]))
endfor
call writefile(out, "out.jsonl")
quitall!
"""


def escaped(text):
    for plain, written in ESCAPES:
        text = text.replace(plain, written)
    return text


def unescaped(text):
    for plain, written in reversed(ESCAPES):
        text = text.replace(written, plain)
    return text


def main():
    rows = [line.split("\t")[:2] for line in open(TABLE, encoding="utf-8").read().splitlines()]
    given = []
    for before, keys in rows:
        before = unescaped(before)
        above = before.split("|")[0].split("\n")
        given.append([before.replace("|", "").split("\n"), len(above), len(above[-1]) + 1, unescaped(keys).split(" ")])
    with tempfile.TemporaryDirectory() as scratch:
        for name, text in [("rows.json", json.dumps(given)), ("driver.vim", DRIVER)]:
            open(os.path.join(scratch, name), "w", encoding="utf-8").write(text)
        words = ["vim", "-u", "NONE", "-i", "NONE", "-n", "-N", "-es", "-S", "driver.vim"]
        subprocess.run(words, cwd=scratch, check=True, timeout=120)
        answers = [json.loads(line) for line in open(os.path.join(scratch, "out.jsonl"), encoding="utf-8")]
    with open(TABLE, "w", encoding="utf-8") as table:
        for (before, keys), (lines, line, char, register) in zip(rows, answers, strict=True):
            lines[line - 1] = lines[line - 1][: char - 1] + "|" + lines[line - 1][char - 1 :]
            table.write("\t".join([before, keys, escaped("\n".join(lines)), escaped(register)]) + "\n")


main()
