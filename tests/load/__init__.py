"""Many people at once, as real sessions over websockets: `make load`."""
