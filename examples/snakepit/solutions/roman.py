VALUES = {
    "M": 1000, "CM": 900, "D": 500, "CD": 400, "C": 100, "XC": 90,
    "L": 50, "XL": 40, "X": 10, "IX": 9, "V": 5, "IV": 4, "I": 1,
}  # fmt: skip


def roman(number):
    if not 1 <= number <= 3999:
        raise ValueError(f"{number} has no roman numeral")
    text = ""
    for sign, value in VALUES.items():
        count, number = divmod(number, value)
        text += sign * count
    return text
