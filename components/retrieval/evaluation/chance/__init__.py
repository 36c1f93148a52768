"""What of a measured difference could be chance: the best of many candidates, and two runs on the same queries."""
