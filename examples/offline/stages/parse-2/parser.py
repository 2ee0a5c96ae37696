"""Tokens to a tree, by precedence climbing."""

WEAK, STRONG = {"+", "-"}, {"*", "/"}


class ParseError(Exception):
    def __init__(self, message, at):
        super().__init__(f"{message} at column {at}")
        self.at = at


class Parser:
    def __init__(self, tokens):
        self.tokens = list(tokens)
        self.next = 0

    def peek(self):
        return self.tokens[self.next] if self.next < len(self.tokens) else None

    def column(self):
        token = self.peek()
        if token:
            return token.at
        last = self.tokens[-1] if self.tokens else None
        return last.at + len(last.text) if last else 0

    def take(self, operators):
        token = self.peek()
        if token and token.kind == "op" and token.text in operators:
            self.next += 1
            return token.text
        return None

    def chain(self, operators, operand):
        tree = operand()
        while op := self.take(operators):
            tree = (op, tree, operand())
        return tree

    def sum(self):
        return self.chain(WEAK, self.product)

    def product(self):
        return self.chain(STRONG, self.signed)

    def signed(self):
        return ("neg", self.signed()) if self.take({"-"}) else self.power()

    def power(self):
        base = self.atom()
        return ("^", base, self.signed()) if self.take({"^"}) else base

    def atom(self):
        token = self.peek()
        if token is None or token.kind in {"op", "close"}:
            raise ParseError("expected a number or (", self.column())
        self.next += 1
        if token.kind == "number":
            return float(token.text)
        inner = self.sum()
        closing = self.peek()
        if closing is None or closing.kind != "close":
            raise ParseError("expected )", self.column())
        self.next += 1
        return inner


def parse(tokens):
    parser = Parser(tokens)
    tree = parser.sum()
    if parser.peek():
        raise ParseError("unexpected " + repr(parser.peek().text), parser.column())
    return tree
