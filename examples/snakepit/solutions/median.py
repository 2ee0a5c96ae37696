def median(numbers):
    if not numbers:
        raise ValueError("there is no median of nothing")
    ordered = sorted(numbers)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
