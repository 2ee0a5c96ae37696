def wrap(text, width):
    if width < 1:
        raise ValueError("the width must be at least 1")
    lines = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines
