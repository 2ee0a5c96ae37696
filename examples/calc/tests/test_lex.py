"""Phase lex."""

import unittest

from calc.lexer import LexError, lex


def kinds(text):
    return [(t.kind, t.text, t.at) for t in lex(text)]


class Lex(unittest.TestCase):
    def test_numbers_and_operators(self):
        self.assertEqual(kinds("1+23"), [("number", "1", 0), ("op", "+", 1), ("number", "23", 2)])
        self.assertEqual([t.text for t in lex("+-*/^")], list("+-*/^"))

    def test_fractions(self):
        self.assertEqual(kinds("3.25"), [("number", "3.25", 0)])
        for text in (".5", "5.", "1.2.3"):
            with self.subTest(text), self.assertRaises(LexError):
                lex(text)

    def test_white_space_and_parentheses(self):
        self.assertEqual(lex(" \t\n"), [])
        self.assertEqual(kinds(" ( 7 )"), [("open", "(", 1), ("number", "7", 3), ("close", ")", 5)])

    def test_anything_else_is_an_error_at_its_column(self):
        with self.assertRaises(LexError) as caught:
            lex("1 + x")
        self.assertIn("4", str(caught.exception))
        self.assertEqual(caught.exception.at, 4)

    def test_tokens_compare(self):
        self.assertEqual(lex("1"), lex("1"))
