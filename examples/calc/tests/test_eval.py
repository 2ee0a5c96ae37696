"""Phase eval."""

import subprocess
import sys
import unittest

from calc.evaluate import CalcError, evaluate


def run(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "calc", *arguments], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


class Evaluate(unittest.TestCase):
    def test_values(self):
        for text, value in {
            "1+2*3": 7,
            "-2^2": -4,
            "2^3^2": 512,
            "(1+2)*3": 9,
            "7/2": 3.5,
            "2^-1": 0.5,
        }.items():
            with self.subTest(text):
                self.assertEqual(evaluate(text), value)

    def test_what_has_no_value(self):
        for text in ("1/0", "0^-1", "(-1)^0.5"):
            with self.subTest(text), self.assertRaises(CalcError):
                evaluate(text)


class Command(unittest.TestCase):
    def test_results(self):
        self.assertEqual(run("1 + 2 * 3"), (0, "7\n", ""))

    def test_mistakes_are_one_line(self):
        for text in ("1 + x", "9^9^9"):
            with self.subTest(text):
                code, out, err = run(text)
                self.assertEqual((code, out, err.count("\n")), (1, "", 1))
                self.assertTrue(err.startswith("error:"))

    def test_usage(self):
        self.assertEqual(run("1", "2")[0], 2)
