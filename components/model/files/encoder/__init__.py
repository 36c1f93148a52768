"""What a published folder says about its encoder beside config.json and the tokenizer's files: arguments, adapter, casing."""
