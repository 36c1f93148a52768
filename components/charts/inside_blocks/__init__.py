"""What happens inside a block: scores and what they are summed from, rotation by positions, inner dimensions."""
