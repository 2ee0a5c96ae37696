"""The loop's judge: `decide` composes its parts, `nouns` says what they speak of."""
