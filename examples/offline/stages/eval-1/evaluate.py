"""A tree to a number."""

from calc.lexer import LexError, lex
from calc.parser import ParseError, parse

OPERATIONS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "^": lambda a, b: a**b,
}


class CalcError(Exception):
    pass


def value(tree):
    if isinstance(tree, float):
        return tree
    if tree[0] == "neg":
        return -value(tree[1])
    operator, left, right = tree
    try:
        result = OPERATIONS[operator](value(left), value(right))
    except ZeroDivisionError:
        raise CalcError("division by zero") from None
    except OverflowError:
        raise CalcError("the result is too large") from None
    if isinstance(result, complex):
        raise CalcError("the result is not a real number")
    return result


def evaluate(text):
    try:
        return value(parse(lex(text)))
    except (LexError, ParseError) as error:
        raise CalcError(str(error)) from None
