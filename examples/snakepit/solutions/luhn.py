def luhn(digits):
    plain = digits.replace(" ", "")
    if not (plain.isascii() and plain.isdigit()):
        return False
    total = 0
    for place, digit in enumerate(reversed(plain)):
        value = int(digit) * (2 if place % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0
