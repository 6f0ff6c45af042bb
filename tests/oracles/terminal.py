# SPDX-License-Identifier: Apache-2.0
"""The screen that a program has drawn on a terminal: what curses and its like use of xterm's control sequences."""
import codecs
import re

# In the character set of lines a letter stands for a line or a sign.
LINES = dict(zip("`afgjklmnopqrstuvwxyz{|}~", "◆▒°±┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·"))
TOKEN = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[()*+][0-9A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[^\[()*+\]]|[^\x1b]", re.S)


class Screen:
    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.cells = [[" "] * columns for _ in range(rows)]
        self.row = self.column = 0
        self.first, self.last = 0, rows - 1  # the region that scrolls
        self.lines, self.repeated = False, " "
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.rest = ""

    def feed(self, data):
        text, at = self.rest + self.decoder.decode(data), 0
        self.rest = ""
        while at < len(text):
            token = TOKEN.match(text, at)
            if not token:
                self.rest = text[at:]
                return
            at = token.end()
            self.take(token.group())

    def take(self, t):
        if t[0] != "\x1b":
            self.character(t)
        elif t[1] == "[":
            if "<" <= t[2] <= "?" or not t[2:-1].replace(";", "").isdigit() and t[2:-1]:
                return
            self.control(t[-1], [int(n) if n else 0 for n in t[2:-1].split(";")])
        elif t[1] == "(":
            self.lines = t[2] == "0"
        elif t[1] == "M":
            self.up()

    def character(self, c):
        if c == "\r":
            self.column = 0
        elif c == "\n":
            self.down()
        elif c == "\b":
            self.column = max(min(self.column, self.columns - 1) - 1, 0)
        elif c == "\t":
            self.column = min(self.column // 8 * 8 + 8, self.columns - 1)
        elif c in "\x0e\x0f":
            self.lines = c == "\x0e"
        elif c >= " ":
            self.put(LINES.get(c, c) if self.lines else c)

    def put(self, c):
        if self.column == self.columns:
            self.column = 0
            self.down()
        self.cells[self.row][self.column] = self.repeated = c
        self.column += 1

    def scroll(self, first, by):
        """Lines from `first` to the end of the region go up by so many lines, or down."""
        blank = [[" "] * self.columns for _ in range(abs(by))]
        part = self.cells[first:self.last + 1]
        size = len(part)
        self.cells[first:self.last + 1] = (part + blank)[-size:] if by > 0 else (blank + part)[:size]

    def down(self):
        if self.row == self.last:
            self.scroll(self.first, 1)
        else:
            self.row = min(self.row + 1, self.rows - 1)

    def up(self):
        if self.row == self.first:
            self.scroll(self.first, -1)
        else:
            self.row = max(self.row - 1, 0)

    def go(self, row, column):
        self.row, self.column = max(0, min(row, self.rows - 1)), max(0, min(column, self.columns - 1))

    def erase(self, begin, end):
        """Cells by their number, row after row."""
        for i in range(begin, end):
            self.cells[i // self.columns][i % self.columns] = " "

    def control(self, how, numbers):
        n = max(numbers[0], 1)
        line, here = self.row * self.columns, self.row * self.columns + min(self.column, self.columns - 1)
        cells = self.cells[self.row]
        if how in "Hf":
            self.go(n - 1, max(numbers[1], 1) - 1 if len(numbers) > 1 else 0)
        elif how in "ABCD":
            self.go(self.row + {"A": -n, "B": n}.get(how, 0), self.column + {"C": n, "D": -n}.get(how, 0))
        elif how in "EF":
            self.go(self.row + (n if how == "E" else -n), 0)
        elif how in "G`":
            self.go(self.row, n - 1)
        elif how == "d":
            self.go(n - 1, self.column)
        elif how == "J":
            self.erase(*((here, self.rows * self.columns), (0, here + 1), (0, self.rows * self.columns))[min(numbers[0], 2)])
        elif how == "K":
            self.erase(*((here, line + self.columns), (line, here + 1), (line, line + self.columns))[min(numbers[0], 2)])
        elif how == "X":
            self.erase(here, min(here + n, line + self.columns))
        elif how == "P":
            cells[self.column:] = (cells[self.column + n:] + [" "] * self.columns)[:self.columns - self.column]
        elif how == "@":
            cells[self.column:] = ([" "] * n + cells[self.column:])[:self.columns - self.column]
        elif how in "LM":
            self.scroll(self.row, n if how == "M" else -n)
        elif how in "ST":
            self.scroll(self.first, n if how == "S" else -n)
        elif how == "b":
            for _ in range(n):
                self.put(self.repeated)
        elif how == "r":
            self.first = n - 1
            self.last = min(numbers[1] or self.rows, self.rows) - 1 if len(numbers) > 1 else self.rows - 1
            self.go(0, 0)

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.cells).rstrip()
