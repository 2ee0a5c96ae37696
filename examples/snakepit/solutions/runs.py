from itertools import groupby


def pack(text):
    return [(character, len(list(run))) for character, run in groupby(text)]


def unpack(packed):
    return "".join(character * count for character, count in packed)
