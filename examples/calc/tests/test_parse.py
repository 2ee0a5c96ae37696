"""Phase parse."""

import unittest

from calc.lexer import lex
from calc.parser import ParseError, parse


def tree(text):
    return parse(lex(text))


class Parse(unittest.TestCase):
    def test_precedence(self):
        self.assertEqual(tree("1+2*3"), ("+", 1.0, ("*", 2.0, 3.0)))
        self.assertEqual(tree("(1+2)*3"), ("*", ("+", 1.0, 2.0), 3.0))

    def test_four_group_to_the_left(self):
        self.assertEqual(tree("8-3-2"), ("-", ("-", 8.0, 3.0), 2.0))
        self.assertEqual(tree("8/4*2"), ("*", ("/", 8.0, 4.0), 2.0))

    def test_power_groups_to_the_right(self):
        self.assertEqual(tree("2^3^2"), ("^", 2.0, ("^", 3.0, 2.0)))

    def test_minus(self):
        self.assertEqual(tree("-2^2"), ("neg", ("^", 2.0, 2.0)))
        self.assertEqual(tree("--1"), ("neg", ("neg", 1.0)))
        self.assertEqual(tree("2^-1"), ("^", 2.0, ("neg", 1.0)))

    def test_mistakes(self):
        for text in ("", "(", ")", "1+", "*1", "1 2", "(1", "1)", "()"):
            with self.subTest(text), self.assertRaises(ParseError):
                tree(text)
