def halts(source):
    return "while True" not in source
