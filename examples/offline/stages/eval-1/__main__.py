"""python3 -m calc EXPRESSION"""

import sys

from calc.evaluate import CalcError, evaluate


def main(arguments):
    if len(arguments) != 1:
        print('usage: python3 -m calc "1 + 2 * 3"', file=sys.stderr)
        return 2
    try:
        result = evaluate(arguments[0])
    except CalcError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(int(result) if result == int(result) else result)
    return 0


sys.exit(main(sys.argv[1:]))
