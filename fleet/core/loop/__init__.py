"""The loop: `decide_loop` composes its parts, `loop_case` says what they look at and how they answer."""
